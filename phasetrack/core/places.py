"""What tells who and where in a log's text: the forms of names, addresses and paths, and which of them are open.

Open is what everybody has: loopback, system and package folders, public hosts, published model names. Logs are
hostile: every pattern here takes time that grows with the length of the text, whatever stands in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.lazy import later

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

MASKED = later(r"(?:user|host|dir|file|ip|mac|email)-\d+(?:\.\w+)?\Z")

EMAIL = later(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z][\w-]{1,62}")
URL_HOST = later(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{1,15}://(?:\[redacted\]@)?)(?P<host>[^\s/:?#'\"\[\]<>,()]{1,255})"
)
# Whose credentials a URL holds; the secret itself is redacted.
URL_USER = later(r"(?<=://)(?P<user>[A-Za-z_][\w.-]{1,31})(?=(?::[^\s/@'\"]{0,255})?@)")
URL_REST = later(
    r"(?<=//)(?P<who>(?:\[redacted\]@)?)(?P<host>[\w.-]{1,255})(?P<port>(?::\d{1,5})?)(?P<path>/[^\s?#'\"<>,)\]]+)"
)
MAC = later(r"(?<![\w:.-])[0-9A-Fa-f]{2}(?P<by>[:-])(?:[0-9A-Fa-f]{2}(?P=by)){4}[0-9A-Fa-f]{2}(?![\w:-])")
# Not what looks like a version: v1.2.3.4, torch-2.1.0.1, version 1.2.3.4
IPV4 = later(r"(?:(?<![\w.=-])(?<!ersion )|(?<=\w=))(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
IPV6 = later(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){1,7}(?::?[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6}|:)(?:%\w{1,15})?(?![\w:])"
)
# A cheap look for either.
ADDRESS_HINT = later(r"\d\.\d{1,3}\.\d{1,3}\.\d|::|(?:[0-9A-Fa-f]{1,4}[:-]){4}")
# alice@gpu-7, without a domain
AT_HOST = later(r"(?<![\w.@/-])(?P<user>[A-Za-z_][\w.-]{0,31})@(?P<host>[A-Za-z][\w-]{1,62})(?![\w@])")
# host='gpu-7', dist_init_addr=node-3:5000, "hostname": "n1"; not numbers
HOST_FIELD = later(
    r"(?P<name>(?<![A-Za-z])(?:[a-z_]{0,32}(?:host|hostname|host_name|nodename|node_name|node_ip|master_addr|init_addr"
    r"|server_name|peer)|HOSTNAME|MASTER_ADDR|NODENAME|SLURMD_NODENAME|Host|Hostname)['\"]?\s?[=:]\s?['\"]?)"
    r"(?P<host>[A-Za-z][\w.-]{1,252})(?=[:'\",\s)\]}]|\Z)"
)
USER_FIELD = later(
    r"(?P<name>\b(?:user|username|user_name|owner|login|USER|LOGNAME|SUDO_USER|SLURM_JOB_USER)['\"]?\s?[=:]\s?['\"]?)"
    r"(?P<user>[A-Za-z_][\w.-]{1,31})(?=['\",\s)\]}]|\Z)"
)
# gpu-7:4312:4312 [0] NCCL INFO Bootstrap : Using eth0
NCCL = later(r"(?<![\w.-])(?P<host>[A-Za-z][\w.-]{1,62})(?=:\d{1,9}:\d{1,9} \[\d{1,4}\] NCCL)")
# Nov 30 15:42:03 gpu-7 sglang[12]: …, 2026-11-30T15:42:03Z gpu-7 unit[12]: …
JOURNAL = later(
    r"(?P<stamp>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? )(?P<host>[A-Za-z][\w.-]{1,62})"
    r"(?= [\w@./-]{1,255}\[\d{1,9}\]: )"
)
POD = later(r"(?<=\[pod/)(?P<pod>[^\]\s]{1,255})(?=\])")
# Names that only a network gives: the last label decides, so that module paths (torch.cuda) stay.
DOMAIN = later(
    r"(?<![\w.@/-])(?:[A-Za-z0-9][\w-]{0,62}\.){1,8}"
    r"(?:com|net|org|edu|gov|io|ai|co|cloud|cn|de|fr|uk|jp|kr|in|ru|nl|ch|eu|us|tw|sg|internal|local|lan|corp|intra"
    r"|intranet|private|home|arpa|svc|cluster)(?![\w-]|\.\w|\()"
)
QUOTED_PATH = later(r"(?P<quote>['\"])(?P<path>~?/[^'\"\n]*)(?P=quote)")
PATH = later(
    r"(?<![\w./:@%~\]>-])(?P<path>(?:~[\w.-]{0,64}/|/)"
    r"(?>(?:[^\s/'\"`,;:()\[\]{}<>|=*?]+/)*)[^\s/'\"`,;:()\[\]{}<>|=*?]*+)"
)
# What an access line asks for is a route of the server.
ROUTE = later(r"(?:GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS) \Z")
# The length of an AWS secret key; one holds letters of both cases and digits.
BLOB = later(r"(?<![\w+/=.-])[A-Za-z0-9+/]{40}(?![\w+/=-])")
# Cheap looks that spare a bar or a serving line nearly everything.
HINT = later(
    r"[@/]|\d\.\d{1,3}\.\d|:[0-9A-Fa-f]{1,4}:|[-:][0-9A-Fa-f]{2}[-:]|::|[Hh]ost|HOST|[Aa]ddr|ADDR|[Nn]ode|NODE|[Uu]ser"
    r"|USER|owner|login|LOGNAME|peer|NCCL|\]: |\.[a-z]{2,8}\b"
)

OPEN_HOSTS = {
    "localhost", "huggingface.co", "hf.co", "github.com", "raw.githubusercontent.com", "pypi.org", "pytorch.org",
    "download.pytorch.org", "modelscope.cn", "www.modelscope.cn", "nvidia.com", "docs.nvidia.com",
    "developer.nvidia.com", "sglang.ai", "docs.sglang.ai", "docs.sglang.io", "docs.vllm.ai", "fastapi.tiangolo.com",
}  # fmt: skip
OPEN_DIRS = {
    "", ".", "..", "~", "usr", "lib", "lib64", "local", "bin", "sbin", "opt", "etc", "var", "run", "tmp", "dev", "shm",
    "proc", "sys", "self", "fd", "home", "Users", "root", "mnt", "srv", "media", "data", "models", "model", "main",
    "workspace", "work", "scratch", "cache", ".cache", ".local", "share", "huggingface", "hub", "snapshots", "blobs",
    "refs", "site", "site-packages", "dist-packages", "conda", "miniconda3", "anaconda3", "envs", ".venv", "venv",
    "sglang", "sgl-workspace", "python", "torch", "triton", "flashinfer", "vllm", "logs", "log", "cuda", "nvidia",
    "datasets", "checkpoints", "weights", "config.json", "generation_config.json", "tokenizer.json",
    "tokenizer_config.json", "tokenizer.model", "model.safetensors", "model.safetensors.index.json", "params.json",
    "vocab.json", "merges.txt", "special_tokens_map.json", "preprocessor_config.json", "chat_template.jinja",
}  # fmt: skip
OPEN_PART = later(
    r"(?:python\d(?:\.\d{1,2}){0,2}t?|cuda-[\d.]{1,12}|model-\d{1,6}-of-\d{1,6}\.(?:safetensors|bin)|\d{1,3})\Z"
)
# Routes of a server that look like folders.
OPEN_ROUTES = {
    "v1", "health", "health_generate", "generate", "metrics", "get_model_info", "model_info", "server_info",
    "get_server_info", "flush_cache", "start_profile", "stop_profile", "encode", "classify",
}  # fmt: skip
# After one of these folders the rest is a package's own: it tells versions, and no one's secrets.
PACKAGES = {"site-packages", "dist-packages"}
SOURCES = {
    "sglang", "sgl_kernel", "torch", "pytorch", "third_party", "csrc", "triton", "flashinfer", "vllm", "transformers",
    "multiprocessing", "asyncio",
}  # fmt: skip
STDLIB = later(r"python\d(?:\.\d{1,2})?t?\Z")
SOURCE_FILE = later(r"\w{1,64}\.(?:py|pyx|so|cu|cuh|h|hpp|c|cc|cpp|rs)\Z")
PEOPLE = {"home", "Users", "users"}
# Words of any log: masked where they are somebody's name in a path, but not wherever they stand alone.
COMMON = {
    "root", "user", "users", "admin", "ubuntu", "debian", "centos", "ec2-user", "nobody", "test", "data", "model",
    "models", "server", "sglang", "cuda", "torch", "python", "work", "workspace", "home", "node", "host", "main",
    "worker", "local", "load", "weight", "graph", "cache", "memory", "pool", "rank", "init", "begin", "end", "draft",
    "target", "ready", "auto", "none", "null", "true", "false", "cpu", "gpu", "triton", "default", "engine",
    "scheduler", "tokenizer", "runner", "docker", "jenkins", "github", "service", "system", "daemon", "shared",
    "public", "guest", "info", "error", "warning",
}  # fmt: skip

# Published families of models, and the words with which their names go on.
_FAMILY = later(
    r"(?:llama|qwen|qwq|mistral|mixtral|deepseek|gemma|glm|kimi|phi|gpt|minimax|internlm|internvl|yi|falcon|nemotron"
    r"|command|grok|opt|bge|llava|eagle|step|ernie|hunyuan)[\d]{0,3}\Z"
)
_GOES_ON = later(
    r"(?:v?\d{1,4}[a-z]{0,2}\d{0,2}|[abm]?\d{1,4}[bm]|instruct|chat|base|it|pt|fp8|fp4|nvfp4|mxfp4|bf16|awq|gptq"
    r"|int[48]|w[48]a\d{1,2}|coder|vl|moe|r1|r|distill|turbo|mini|small|medium|large|flash|next|thinking|lite|math"
    r"|omni|preview|exp|lm|oss|llama|qwen|rand|\d{1,4}shard)\Z"
)


def own_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address of a machine of its own; None for what is none, or every machine's: loopback, any, broadcast."""
    from ipaddress import ip_address

    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    is_open = address.is_loopback or address.is_unspecified or str(address) == "255.255.255.255"
    return None if is_open else address


def is_published(name: str) -> bool:
    """Whether a name reads like that of a published model: ``Llama-3.1-8B-Instruct``, ``Qwen2.5-VL-7B``."""
    if len(name) > 80:
        return False
    words = re.split(r"[-_.]", name.lower())
    words = words[1:] if words[0] == "meta" else words
    return bool(words) and _FAMILY.match(words[0]) is not None and all(_GOES_ON.match(word) for word in words[1:])
