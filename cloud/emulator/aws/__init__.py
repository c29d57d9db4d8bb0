"""AWS on this machine: enough of STS, IAM, Lambda, S3, CloudWatch Logs and tagging for the real boto3.

`server.AwsEmulator` is the whole; the other files are one service or one idea each. Handlers run under AWS's own
runtime client in processes of their own. What it says of prices it meters itself, apart from anybody's ledger.
"""
