"""The words that the auction streams are made of: names, places, things."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["CHANNELS", "CITIES", "FIRST_NAMES", "LAST_NAMES", "QUALITIES", "STATES", "THINGS"]


def _array(words: str) -> pa.Array:
    return pa.array(words.split())


FIRST_NAMES: Final = _array(
    "Ada Amir Beth Carlos Dina Emil Fatima Greta Hugo Ines Jonas Kira "
    "Liam Mei Nadia Omar Petra Ravi Sofia Tariq Uma Viktor Wanda Yuki"
)
LAST_NAMES: Final = _array(
    "Andersen Baker Castillo Dubois Eriksen Fischer Gupta Haddad Ivanov Jensen Kowalski Lindqvist "
    "Moreau Nakamura Okafor Pereira Quinn Rossi Sato Tanaka Varga Weber Yilmaz Zhang"
)
# City by city.
CITIES: Final = _array(
    "Boise Denver Fresno Helena Laramie Oakland Phoenix Portland Provo Reno Seattle Spokane Tucson"
)
STATES: Final = _array("ID CO CA MT WY CA AZ OR UT NV WA WA AZ")

QUALITIES: Final = _array("antique blue carved folding gilded rare signed small used")
THINGS: Final = _array(
    "atlas bicycle camera chair clock guitar lamp map mirror radio ring telescope vase"
)

CHANNELS: Final = pa.array(["web", "app", "phone", *(f"partner {i}" for i in range(1, 8))])
