"""AWS on this machine: enough of STS, IAM, Lambda, S3, CloudWatch Logs and tagging for the real boto3.

Begin at `server.AwsEmulator`; each other file is one service or one idea. Handlers run in their own processes under
AWS's own runtime client. The meter keeps what the account bills.
"""
