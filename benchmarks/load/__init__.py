"""`roomtone bench load`: what it costs to receive many people who speak at once, and whether anything grows.

`bench` measures. The crowd and its Discord are one process (`crowd`), and who receives it is another one
(`receiving_process`). `talk` is what everybody says.
"""
