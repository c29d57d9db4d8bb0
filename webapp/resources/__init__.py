"""Resources that Starling runs in cloud accounts: each has a row before it is created, and scans compare both."""
