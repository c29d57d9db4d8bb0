"""Reward surfaces: returns around a checkpoint's policy, along the two directions in which its objective bends most."""
