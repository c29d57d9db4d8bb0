"""The processes of an installation: started, supervised, patient at start-up, stopped with what they hold."""
