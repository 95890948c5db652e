"""The budget layer: keeps every model call within its token limit. All public names can be imported from here.

`estimator` counts tokens. `trim` leaves out the least important messages, the oldest turns by `rolling`, and
`eviction_note` says so. `tool_outputs` and `files` shorten old tool outputs, of `messages` that belong together.
`summarize` summarises what was left out. `prompt` applies these steps to a model call.
"""

from __future__ import annotations

from compaction.budget.estimator import Estimator as Estimator
from compaction.budget.files import FileReference as FileReference
from compaction.budget.files import get_active_files as get_active_files
from compaction.budget.files import should_preserve_file_content as should_preserve_file_content
from compaction.budget.prompt import ContextConfig as ContextConfig
from compaction.budget.prompt import build_final_prompt as build_final_prompt
from compaction.budget.prompt import enforce_context_limit as enforce_context_limit
from compaction.budget.rolling import rolling_evict as rolling_evict
from compaction.budget.summarize import SummarizeOptions as SummarizeOptions
from compaction.budget.summarize import summarize_context as summarize_context
from compaction.budget.tool_outputs import ToolOutputOptions as ToolOutputOptions
from compaction.budget.tool_outputs import create_truncated_placeholder as create_truncated_placeholder
from compaction.budget.tool_outputs import extract_key_info as extract_key_info
from compaction.budget.tool_outputs import should_truncate_tool_result as should_truncate_tool_result
from compaction.budget.tool_outputs import summarize_tool_output as summarize_tool_output
from compaction.budget.tool_outputs import truncate_old_tool_outputs as truncate_old_tool_outputs
from compaction.budget.trim import TrimOptions as TrimOptions
from compaction.budget.trim import TrimStrategy as TrimStrategy
from compaction.budget.trim import trim_conversation as trim_conversation
from compaction.tokens import estimate_tokens as estimate_tokens
