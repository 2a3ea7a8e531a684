// Browsers start no worker from a page that was opened from the file system. There the search's
// script runs in a hidden frame instead, behind the same interface.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>search</title>";
      this.frame.addEventListener("load", () => this.start(String(url)), { once: true });
      document.documentElement.appendChild(this.frame);
    }

    start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.deliver = (data) =>
          inside.dispatchEvent(new inside.MessageEvent("message", { data }));
        this.waiting.splice(0).forEach((data) => this.deliver(data));
      };
      inside.document.head.appendChild(script);
    }

    postMessage(data) {
      if (this.deliver) this.deliver(data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
