"""Routes are given what their signatures ask for, and only what the address says is a parameter."""

from typing import Annotated, Any

import pytest
from django.http import Http404, HttpRequest
from ninja import NinjaAPI, Query, Schema
from ninja.testing import TestClient

from webapp.api.router import ApiRouter, Dependency


class Shape(Schema):
    words: str


Street = Annotated[str, Query(max_length=20)]


def _house(
    request: HttpRequest, town: str, street: Street = "main", needs: str = "", *, empty: bool = False
) -> str:
    if town == "nowhere":
        raise Http404("There is no such town.")
    return "nothing" if empty else f"{town}, {street}, {needs}"


Key = Annotated[str, Dependency(_house, "key")]


@pytest.fixture(scope="module")
def api() -> NinjaAPI:
    router = ApiRouter()

    @router.get("/{town}/house", response=(200, 304))
    def get_house(house: Key, floor: int = 1) -> Shape:
        return Shape(words=f"{house}, floor {floor}")

    @router.delete("/{town}/house", response=204)
    def remove_house(house: Key, request: HttpRequest) -> None:
        assert request.method == "DELETE"

    found = NinjaAPI(urls_namespace="given")
    found.add_router("", router)
    return found


def test_a_value_is_found_by_what_the_address_says(api: NinjaAPI) -> None:
    client = TestClient(api)
    assert client.get("/ulm/house").json()["words"].split(", ") == ["ulm", "main", "key", "floor 1"]
    assert client.get("/ulm/house?street=side&floor=3").json()["words"].split(", ") == [
        "ulm",
        "side",
        "key",
        "floor 3",
    ]
    assert client.get("/ulm/house?needs=x&empty=true").json()["words"].split(", ") == [
        "ulm",
        "main",
        "key",
        "floor 1",
    ]
    assert client.get("/nowhere/house").status_code == 404
    assert client.delete("/ulm/house").status_code == 204


def test_who_has_the_state_already_is_not_sent_it_again(api: NinjaAPI) -> None:
    client = TestClient(api)
    tag = client.get("/ulm/house")["ETag"]
    assert client.get("/ulm/house", headers={"If-None-Match": tag}).status_code == 304
    assert client.get("/ulm/house?floor=2", headers={"If-None-Match": tag}).status_code == 200


def test_the_description_has_the_parameters_of_the_address_alone(api: NinjaAPI) -> None:
    described: dict[str, Any] = api.get_openapi_schema(path_prefix="")["paths"]["/{town}/house"]
    assert [one["name"] for one in described["get"]["parameters"]] == [
        "town",
        "street",
        "floor",
        "If-None-Match",
    ]
    assert [one["name"] for one in described["delete"]["parameters"]] == ["town", "street"]


def test_a_dependency_whose_value_no_request_can_name_is_refused_when_it_is_declared() -> None:
    router = ApiRouter()

    def get_house(house: Key) -> Shape:
        return Shape(words=house)

    with pytest.raises(TypeError, match="town"):
        router.get("/house")(get_house)
