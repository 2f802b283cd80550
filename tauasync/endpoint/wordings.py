"""How providers say what went wrong: codes and wordings, as data.

There is no common code for most of these, so each table lists what has been met. A text
that matches nothing stays what its HTTP status says.
"""

from __future__ import annotations

import re

QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "billing_hard_limit_reached",
        "exceeded_current_quota_error",
        "billing_not_active",
        "insufficient_balance",
        "insufficient_credits",
        "insufficient_user_quota",
        "payment_required",
        "arrearage",
    }
)
# Not "exceeded your current quota": Gemini says that of its per-minute limits too.
QUOTA_TEXT = re.compile(
    r"credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)"
    r"|billing hard limit|not enough (?:credits?|balance)|(?:account|balance).{0,40}in arrears",
    re.IGNORECASE,
)

FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_filtered",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "data_inspection_failed",
        "datainspectionfailed",
        "content_moderation",
        "moderation_blocked",
    }
)

CONTEXT_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}
)
CONTEXT_TEXT = re.compile(
    "|".join(
        (
            r"maximum context length",  # OpenAI, vLLM, OpenRouter, DeepSeek, Mistral
            r"model'?s context (?:length|window)",  # SGLang
            r"maximum (?:model|prompt) length",  # vLLM, xAI
            r"prompt is too long",  # Anthropic
            r"input is too long",  # Bedrock
            r"(?:prompt|input) length \d* ?exceeds",
            r"input length and .?max_tokens.? exceed",  # Anthropic
            r"exceeds? (?:the |this )?(?:model'?s? )?(?:available )?context",  # llama.cpp
            r"context (?:size|window|length) (?:is |was |has been )?exceeded",
            r"input token count.{0,40}exceeds",  # Gemini
            r"input tokens exceed",  # OpenAI
            r"too long to fit into the model",  # vLLM
            r"reduce the length of (?:the|your) (?:messages|input|prompt)",
            r"max_tokens must be at least 1, got -?\d+",  # vLLM with a full prompt
            r"exceed(?:s|ed)? (?:the )?max(?:imum)?[ _](?:input|num|seq|sequence)[ _]"
            r"(?:len\w*|tokens)",  # TensorRT-LLM
            r"default_max_tokens.{0,40}(?:must be )?greater than 0",  # TensorRT-LLM
            r"prompt length .{0,80}should not exceed max_num_tokens",  # TensorRT-LLM
            r"inputs.? tokens \+ .?max_new_tokens",  # TGI
            r"number of tokens in the prompt cannot exceed",  # Cohere
            r"loaded with context length of only",  # LM Studio
            r"too many (?:input tokens|tokens:)",
        )
    ),
    re.IGNORECASE,
)

KEY_CODES = frozenset({"invalid_api_key", "authentication_error", "api_key_invalid"})
KEY_TEXT = re.compile(r"(?:invalid|incorrect) api[ _]key|api[ _]key not valid", re.IGNORECASE)

MODEL_CODES = frozenset({"model_not_found", "modelnotfound", "model_not_exist"})
MODEL_TEXT = re.compile(
    r"\bmodel\b[\s:]*(?:[`'\"]?[\w./:@-]{1,200}[`'\"]? )?"
    r"(?:does not exist|not exist|(?:is |was )?not found|is no longer available)"
    r"|(?:no such|unknown) model|is not a valid model",
    re.IGNORECASE,
)

RATE_CODES = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests"}
)
RATE_TEXT = re.compile(r"per[ -]?min|/ ?min|\b[rt]pm\b|\ba minute", re.IGNORECASE)
"""A refusal that counts by the minute, and not by how many are at work at once."""
SERVER_CODES = frozenset(
    {
        "server_error",
        "internal_error",
        "internal_server_error",
        "internal",
        "unavailable",
        "overloaded",
        "overloaded_error",
        "timeout",
    }
)
REQUEST_CODES = frozenset({"invalid_request_error", "invalid_argument", "badrequesterror"})

PARAMETER_CODES = frozenset({"unsupported_parameter", "unsupported_value"})
PARAMETER_TEXT = re.compile(
    r"unsupported (?:parameter|value)[: ]+['\"`]?(?P<a>[a-z_]+)"
    r"|['\"`](?P<b>[a-z_]+)['\"`] (?:does not support|is not supported|is deprecated)",
    re.IGNORECASE,
)
