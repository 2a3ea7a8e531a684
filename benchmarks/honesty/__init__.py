"""Does *trust* hold on logs from published benchmarks? Tasks, defects and a study with its page."""
