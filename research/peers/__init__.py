"""Other people's libraries as arms: programs for an environment of their own, which import nothing of ours."""
