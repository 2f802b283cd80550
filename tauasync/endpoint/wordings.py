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
        "accountoverdueerror",  # Volcengine
        "setlimitexceeded",  # Volcengine: a cap the account set itself
        "allocationquota.freetieronly",  # DashScope
        "prepaidbilloverdue",
        "postpaidbilloverdue",
        "commoditynotpurchased",
        "billing_error",
        "spend_limit_exceeded",
        "credit_limit_exceeded",
        "blocked_api_access",  # Groq: a spending limit
    }
)
# Not "exceeded your current quota": Gemini says that of its per-minute limits too.
QUOTA_TEXT = re.compile(
    r"credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)"
    r"|balance is (?:insufficient|not enough|not sufficient)"  # SiliconFlow
    r"|billing hard limit|not enough (?:credits?|balance)|(?:account|balance).{0,40}in arrears"
    r"|used all (?:of )?(?:its |your |the )?available credits"  # xAI
    r"|(?:reached|exceeded|hit) .{0,40}(?:spend(?:ing)?|credit|inference) (?:limit|cap)"
    r"|reached your specified .{0,20}usage limits"  # Anthropic
    r"|\bkey limit exceeded"  # OpenRouter
    r"|account .{0,20}(?:is |has been )?suspended"  # Fireworks
    r"|account is not active, please check your billing"  # OpenAI
    r"|free (?:tier|quota).{0,40}(?:exhausted|used up)"  # DashScope
    r"|quota exceeded for metric: .{0,160}limit: 0\b"  # Gemini: no free tier for this model
    r"|余额不足|欠费|账户.{0,8}(?:锁定|停用)|额度.{0,4}(?:耗尽|用完|不足)",
    re.IGNORECASE | re.DOTALL,
)
NUMBERED_QUOTA_CODES = frozenset({"1110", "1112", "1113", "1121", "1309"})
"""Zhipu's: the account is inactive, locked, without money, its plan over. Numbers may mean
anything elsewhere, so they count only beside a status that quotas have."""

LONG_PERIOD_CODES = frozenset({"1304", "1308", "1310"})
"""Zhipu's, in the same way: what a day, some hours, a week or a month allow is used up."""
LONG_PERIOD_TEXT = re.compile(
    r"per[ _-]?(?:day|week|month)|(?:/|\ba|\bby) ?(?:day|week|month)\b|bymodelbyday|per 86400"
    r"|\b[rt]pd\b|\b(?:daily|weekly|monthly)\b.{0,40}(?:limit|quota|allocation|allowance|cap\b)"
    r"|(?:今日|每日|每天|每周|每月).{0,12}(?:限|额|上限)",
    re.IGNORECASE,
)
"""A refusal that counts by the day or longer: nothing goes through until that is over."""
PAUSE_TEXT = re.compile(
    r"(?:try again|retry(?:ing)?|wait|available again) (?:in|after|for)? ?"
    r"(?P<pause>(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+)\b"
    r"|wait (?P<seconds>\d+(?:\.\d+)?) seconds",
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

KEY_CODES = frozenset(
    {"invalid_api_key", "expired_api_key", "authentication_error", "api_key_invalid"}
)
KEY_TEXT = re.compile(
    r"(?:invalid|incorrect|expired|revoked|disabled) api[ _]key|api[ _]key not valid"
    r"|api[ _]key.{0,80}(?:has expired|(?:has been|is|was) (?:revoked|disabled|deleted))",
    re.IGNORECASE,
)

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
