"""What a program says is compared with job.toml; each check gives what is wrong, and how to mend it."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from antdt._member import Member
    from antdt.torch._loader import Loader


class Checks:
    def __init__(self) -> None:
        self._said = False  # that the job does not evaluate

    @staticmethod
    def length(member: "Member", loader: "Loader", key: str) -> Optional[str]:
        """Whether the dataset has as many records as [data] says under `key`."""
        data = member.config.get("data", {})
        wanted = data.get(key, 0) if data.get("format") == "index" else 0
        if not wanted or wanted == len(loader):
            return None
        return (f"the dataset has {len(loader)} records, and job.toml says [data] {key} = {wanted}: "
                f"write the number that the dataset has. If the other workers say nothing like this, "
                f"the data of {member.worker} on {member.host} are other ones: copy the same files there")

    @staticmethod
    def declared(member: "Member", adjust: Optional[str]) -> Optional[str]:
        said = member.config.get("batch", {}).get("adjust")
        if adjust is None or said is None or said == adjust:
            return None
        return (f'this program declares adjust="{adjust}", and job.toml says [batch] adjust = "{said}": '
                f'write adjust = "{adjust}"')

    def say_if_never_evaluated(self, config: Dict[str, Any], rank: int) -> None:
        data = config.get("data", {})
        if self._said or data.get("format") != "index" or data.get("eval_records") or rank:
            return
        self._said = True
        print("antdt: job.evaluate evaluates nothing and returns None, since job.toml does not say of how "
              "many records: write [data] eval_records = len(dataset)", file=sys.stderr, flush=True)
