"""The sign-in: what azure-identity requests of login.microsoftonline.com, and its errors by number."""

from __future__ import annotations

from urllib.parse import parse_qsl

from emulator.azure.subscription import TOKEN_LASTS_S, Subscription
from emulator.http import HttpRequest, HttpResponse, json_response


class SignIn:
    """Two addresses for each tenant, below `base`."""

    def __init__(self, subscription: Subscription, base: str) -> None:
        self._subscription = subscription
        self._base = base

    def handle(self, request: HttpRequest) -> HttpResponse:
        tenant = request.parts[0]
        if tenant != self._subscription.tenant_id:
            return _refused(400, "invalid_request", f"AADSTS90002: Tenant '{tenant}' not found.")
        match request.parts[1:]:
            case ["v2.0", ".well-known", "openid-configuration"]:
                here = f"{self._base}/{tenant}"
                return json_response(
                    200,
                    {
                        "issuer": f"{here}/v2.0",
                        "token_endpoint": f"{here}/oauth2/v2.0/token",
                        "authorization_endpoint": f"{here}/oauth2/v2.0/authorize",
                    },
                )
            case ["oauth2", "v2.0", "token"]:
                return self._token(dict(parse_qsl(request.body.decode())))
            case _:
                return HttpResponse(404)

    def _token(self, form: dict[str, str]) -> HttpResponse:
        client_id = form.get("client_id", "")
        app = self._subscription.apps.get(client_id)
        if app is None:
            words = f"AADSTS700016: Application with identifier '{client_id}' was not found in the directory."
            return _refused(400, "unauthorized_client", words)
        if form.get("client_secret") != app.secret:
            return _refused(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
        if app.secret_expired:
            return _refused(
                401, "invalid_client", "AADSTS7000222: The provided client secret keys are expired."
            )
        token = self._subscription.token_for(app)
        return json_response(
            200, {"token_type": "Bearer", "expires_in": int(TOKEN_LASTS_S), "access_token": token}
        )


def _refused(status: int, error: str, words: str) -> HttpResponse:
    return json_response(status, {"error": error, "error_description": words})
