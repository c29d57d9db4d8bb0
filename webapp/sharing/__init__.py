"""Links that show one job, comparison or report to people who have them, without an account.

Begin with `models`, then `allowlist`: what a shared page may contain. Everything else of the project stays inside.
"""
