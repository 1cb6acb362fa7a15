package main

import (
	"os/exec"
	"syscall"
)

// dieWithTests has whatever kills the tests kill the process, too.
func dieWithTests(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
