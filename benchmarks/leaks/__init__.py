"""`roomtone bench leaks`: whether memory, threads, files and tasks stay flat."""
