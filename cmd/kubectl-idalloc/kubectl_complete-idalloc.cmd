@rem kubectl runs this to complete the words behind "kubectl idalloc". Put it beside kubectl-idalloc.exe into your Path.
@kubectl-idalloc.exe __complete %*
