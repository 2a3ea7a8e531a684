"""Does *trust* hold on logs nobody here wrote? Tasks, defects and a study with its page."""
