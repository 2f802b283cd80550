"""Reading APN settings given by a model, as leniently as the benchmark reads them.

This is the one place in the domain where arguments are validated and coerced ("yes" is a
true flag, "8080" a port). The benchmark does it with pydantic, so pydantic does it here:
whether a value is taken and what it becomes ends up in the database.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tauasync.environment.telecom.phone import ApnName, ApnSettings

DEFAULT = ApnSettings()


class _ApnInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    apn_name: ApnName = DEFAULT.apn_name
    reset_at_reboot: bool = DEFAULT.reset_at_reboot
    mms_apn: str | None = DEFAULT.mms_apn
    mmsc_url: str | None = DEFAULT.mmsc_url
    mms_proxy: str | None = DEFAULT.mms_proxy
    mms_port: int | None = DEFAULT.mms_port


def read_apn(given: dict[str, Any]) -> ApnSettings:
    """The settings described by a JSON object; what it leaves out has its default.

    Raises:
        ValueError: an unknown field, or a value that does not fit; names each.
    """
    try:
        return ApnSettings(**_ApnInput(**given).model_dump())
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ValueError(f"these are no APN settings: {'; '.join(problems)}") from None
