"""The logs of all gateway processes of one bot, for `roomtone tail` on any of their machines.

Each process keeps its own log. A tail asks over PostgreSQL's notifications (`bot.store.dialects.port.Notifications`),
and each process answers with the lines of its log that the tail wants, for as long as it goes on asking. Nothing is
stored anywhere, so what is deleted from a log is in no other place.

`messages` has what is asked and answered, `sealed` keeps it from other users of the database. `shared_log` is the task
that answers, `requested_lines` reads for it. `asked_logs` and `time_order` are the side of the tail; `event_filter`
chooses lines on both.
"""
