"""Loading: what is accepted, and one clear error for everything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.config.load import MAX_FILE_BYTES, load_config, validate
from tauasync.config.schema import RunConfig
from tauasync.errors import ConfigError
from tauasync.types import Mode
from tests.config.builders import TEXT, tables, write

KEY = "sk-proj-Abc123Def456Ghi789Jkl012"
TOKEN = "0123456789abcdef0123456789abcdef"


def load(folder: Path, text: str | bytes = TEXT, *overrides: str) -> RunConfig:
    return load_config(write(folder, text), overrides, environ={})


def refusal(folder: Path, text: str | bytes, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *overrides)
    message = str(caught.value)
    assert "night.toml" in message or "--set" in message
    return message


def test_defaults_are_those_of_the_published_setup(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.limits.max_steps, config.limits.max_errors, config.run.seed) == (200, 10, 300)
    assert config.limits.enforce_protocol is False
    assert config.domains[0].modes == (Mode.DEFAULT,)
    assert config.models["gpt-4.1"].model == "gpt-4.1"
    assert config.budget.micro_usd is None


def test_a_run_without_a_name_is_called_like_its_file(tmp_path: Path) -> None:
    assert load(tmp_path).run.name == "night"
    assert load(tmp_path, "[run]\nname = 'x'\n" + TEXT).run.name == "x"


def test_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + TEXT.encode()) == load(tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: there is no such file"):
        load_config(tmp_path / "gone.toml", environ={})


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(tmp_path, environ={})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[run]\nname = '\xff'\n", "not UTF-8 text (line 2)"),
        ("[run]\ntrials = = 3\n", "line 2"),
        ("[run]\n[run]\n", "not valid TOML"),
        ("a = " + "[" * 5000, "night.toml"),
        ("#" * (MAX_FILE_BYTES + 1), "larger than"),
    ],
)
def test_a_file_that_is_no_toml_is_named_with_the_place(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    assert words in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[roles]", "[rolls]", "unknown key; did you mean `roles`?"),
        ('split = "small"', 'spilt = "small"', "domains.0.spilt: unknown key"),
        ("api_key_env =", "api_key_enf =", "did you mean `api_key_env`?"),
        ("parameters =", "parametres =", 'models."gpt-4.1".parametres'),
        ('kind = "embedded"', 'kind = "embeded"', 'expected one of "openai", "embedded"'),
        ('kind = "embedded"', 'kind = "embeded"', "did you mean `embedded`?"),
        ('user = "oracle"', "", "roles.user: missing"),
        (
            'user = "oracle"',
            'user = "orakle"',
            "there is no model 'orakle'; did you mean `oracle`?",
        ),
        ('user = "oracle"', 'user = "oracle"\njudge = "x"', "roles.judge: there is no model 'x'"),
        ('["oracle", "gpt-4.1"]', "[]", "roles.agents: expected at least one entry"),
        ('["oracle", "gpt-4.1"]', '"oracle"', "expected a list, got the text 'oracle'"),
        ('["oracle", "gpt-4.1"]', '["oracle", "oracle"]', "'oracle' is listed twice"),
        ('["oracle", "gpt-4.1"]', "[1]", "roles.agents.0: expected a text, got the whole number 1"),
        ('endpoint = "sim"', 'endpoint = "sin"', "there is no endpoint 'sin'; did you mean `sim`?"),
        ('kind = "embedded"', 'base_url = "ftp://x"', "expected an http(s) address"),
        ('kind = "embedded"', 'base_url = "api.example.com/v1"', "expected an http(s) address"),
        ('kind = "embedded"', 'base_url = "https://"', "expected an http(s) address"),
        ('kind = "embedded"', 'base_url = "https://h:99999999"', "expected an http(s) address"),
        ('kind = "embedded"', 'base_url = "https://h/v1?a=b"', "without `?` or `#`"),
        (
            'kind = "embedded"',
            'base_url = "https://h/v1/chat/completions"',
            "without /chat/completions",
        ),
        ('kind = "embedded"', "max_in_flight = 3", "endpoints.sim.base_url: missing"),
        (
            'kind = "embedded"',
            'kind = "embedded"\napi_key_env = "K"',
            "not used by an embedded",
        ),
        ("api_key_env =", 'faults = [{ what = "hang" }]\napi_key_env =', 'of kind "embedded"'),
        ('kind = "embedded"', 'kind = "embedded"\nfaults = [{ at = 1979-05-27 }]', "0.at"),
        ('kind = "embedded"', 'kind = "embedded"\nfaults = ["hang"]', "faults.0: expected a table"),
        ("api_key_env =", "latency_s = 1.0\napi_key_env =", 'only an endpoint of kind "embedded"'),
        ('split = "small"', "task_limit = 0", "expected at least 1, got the whole number 0"),
        ('split = "small"', 'tasks = ["a", "a"]', "'a' is listed twice"),
        ('split = "small"', 'modes = ["solo"]', '"default", "no-user", "oracle-plan"'),
        ('split = "small"', 'policies = ["manual", "manual"]', "listed twice"),
        ('split = "small"', 'source = "upstream"', "TAUASYNC_TAU2_DATA"),
        (
            'split = "small"',
            'split = "small"\n[[domains]]\nname = "telecom"\nsplit = "small"',
            "the same as domains.0",
        ),
        (
            'split = "small"',
            '[[domains]]\nname = "telecom"\nsource = "upstream"',
            "would be pooled",
        ),
        ("temperature = 0.0", "model = 'x'", "`model` is not a sampling parameter"),
        ("temperature = 0.0", "seed = 1", "derived from run.seed"),
        ("temperature = 0.0", "top_p = nan", "which JSON cannot express"),
        ("temperature = 0.0", "a = { b = [1979-05-27] }", "`a.b.0` is a date"),
        ("temperature = 0.0", "max_tokens = 1, max_completion_tokens = 1", "mean the same"),
        ("[models.oracle]", '[models."or\\u001facle"]', "control characters"),
    ],
)
def test_a_wrong_key_is_told_with_what_was_expected(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in TEXT
    assert words in refusal(tmp_path, TEXT.replace(old, new, 1))


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("run.trials=0", "expected at least 1, got the whole number 0"),
        ('run.trials="4"', "got the text '4'; write it without quotes"),
        ("run.trials=1.5", "expected a whole number, got the number 1.5"),
        ("run.trials=true", "expected a whole number, got `true`"),
        ("run.seed=-1", "expected at least 0"),
        ("budget.usd=0", "expected more than 0"),
        ("budget.usd=inf", "expected a finite number"),
        ("limits.enforce_protocol=1", "expected true or false"),
        ("run.name=7", "expected a text, got the whole number 7; write it in quotes"),
        ("limits=3", "expected a table, got the whole number 3"),
        ("domains=[]", "expected at least one entry"),
        ("models.oracle.profile=gemni", "did you mean `gemini`?"),
        ("models.oracle.price={input=1}", "models.oracle.price.output: set by --set: missing"),
    ],
)
def test_a_wrong_value_on_the_command_line_says_so(
    tmp_path: Path, override: str, words: str
) -> None:
    message = refusal(tmp_path, TEXT, override)
    assert words in message
    assert "set by --set" in message


def test_all_problems_of_a_file_are_reported_together(tmp_path: Path) -> None:
    text = (
        TEXT.replace('endpoint = "sim"', 'endpoint = "sin"')
        .replace('split = "small"', "task_limit = 0")
        .replace('kind = "embedded"', "max_in_flihgt = 3")
    )
    message = refusal(tmp_path, text, "run.trials=0")
    lines = message.splitlines()
    assert lines[0].endswith("night.toml: 5 problems")
    assert len(lines) == 6
    assert "  run.trials (from --set): expected at least 1, got the whole number 0" in lines
    for key in ("endpoints.sim.max_in_flihgt", "endpoints.sim.base_url", "models.oracle.endpoint"):
        assert any(line.startswith(f"  {key}: ") for line in lines), key


@pytest.mark.parametrize("secret", [KEY, TOKEN, "gsk_Abc123Def456Ghi789", "Bearer abcdef"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"CLOUD_KEY"', '"{secret}"'),
        ('api_key_env = "CLOUD_KEY"', 'api_key = "{secret}"'),
        ('api_key_env = "CLOUD_KEY"', 'headers = {{ "api-key" = "{secret}" }}'),
        ('api_key_env = "CLOUD_KEY"', 'headers = {{ "X-Other" = "{secret}" }}'),
        ("temperature = 0.0", 'api_key = "{secret}"'),
        ("temperature = 0.0", 'extra = {{ inner = ["{secret}"] }}'),
        ("https://api", "https://me:{secret}@api"),
        ("api.example.com", "api:{secret}"),
    ],
)
def test_a_pasted_key_is_refused_and_not_repeated(
    tmp_path: Path, secret: str, old: str, new: str
) -> None:
    message = refusal(tmp_path, TEXT.replace(old, new.format(secret=secret), 1))
    assert secret not in message


def test_a_wrong_value_that_may_be_a_key_is_not_repeated(tmp_path: Path) -> None:
    message = refusal(tmp_path, TEXT, f'run.trials="{TOKEN}"')
    assert TOKEN not in message
    assert "it may be a key" in message


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "my_openai_key_2024_production", "K"])
def test_names_of_variables_are_accepted(tmp_path: Path, name: str) -> None:
    config = load(tmp_path, TEXT.replace("CLOUD_KEY", name))
    assert config.endpoints["cloud"].api_key_env == name


def test_a_simulated_endpoint_may_live_in_another_process(tmp_path: Path) -> None:
    address = "http://localhost:1/v1"
    text = TEXT.replace('kind = "embedded"', f'kind = "embedded"\nbase_url = "{address}"')
    assert load(tmp_path, text).endpoints["sim"].base_url == address


def test_a_header_may_refer_to_a_variable(tmp_path: Path) -> None:
    text = TEXT.replace(
        "api_key_env",
        'headers = { Authorization = "Bearer ${TOKEN}", X-Title = "tau" }\napi_key_env',
    )
    headers = load(tmp_path, text).endpoints["cloud"].headers
    assert headers == {"Authorization": "Bearer ${TOKEN}", "X-Title": "tau"}


def test_the_data_folder_is_flag_before_variable_before_file(tmp_path: Path) -> None:
    path = write(tmp_path, "[run]\ndata_dir = 'file'\n" + TEXT)
    variable = {"TAUASYNC_TAU2_DATA": "variable"}
    flag = Path("flag")
    assert load_config(path, data_dir=flag, environ=variable).run.data_dir == flag
    assert load_config(path, environ=variable).run.data_dir == Path("variable")
    assert load_config(path, environ={"TAUASYNC_TAU2_DATA": ""}).run.data_dir == Path("file")


def test_relative_paths_are_left_to_the_current_directory(tmp_path: Path) -> None:
    config = load(tmp_path, '[cache]\ndir = "mine"\n' + TEXT)
    assert config.cache.dir == Path("mine")


def test_a_budget_is_whole_micro_dollars_and_never_rounded_up(tmp_path: Path) -> None:
    assert load(tmp_path, TEXT, "budget.usd=0.1").budget.micro_usd == 100_000
    assert load(tmp_path, TEXT, "budget.usd=150").budget.micro_usd == 150_000_000
    assert load(tmp_path, TEXT, "budget.usd=0.0000019").budget.micro_usd == 1


def test_a_profile_may_be_a_name_or_a_table(tmp_path: Path) -> None:
    short = load(tmp_path, TEXT, "models.oracle.profile=gemini").models["oracle"].profile
    table = load(tmp_path, TEXT, "models.oracle.profile.send_seed=true").models["oracle"].profile
    both = load(
        tmp_path, TEXT, "models.oracle.profile=gemini", "models.oracle.profile.send_seed=true"
    )
    assert (short.base, short.send_seed) == ("gemini", None)
    assert (table.base, table.send_seed) == ("openai", True)
    assert both.models["oracle"].profile.base == "gemini"
    assert both.models["oracle"].profile.send_seed is True


def test_a_configuration_is_frozen(tmp_path: Path) -> None:
    config = load(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        config.run.trials = 3


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    ["run", "limits", "budget", "cache", "endpoints", "models", "roles", "domains"]
)


@given(_KEYS, _VALUES)
def test_whatever_stands_in_a_section_the_answer_is_a_configuration_or_a_config_error(
    key: str, value: object
) -> None:
    try:
        validate({**tables(), key: value}, source="x.toml")
    except ConfigError as error:
        first = str(error).splitlines()[0]
        assert re.match(r"x\.toml: ", first)
