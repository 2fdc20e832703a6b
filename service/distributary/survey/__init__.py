"""What is looked at before the service runs: a config's plan, this machine's health, a first config."""
