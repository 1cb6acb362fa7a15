package main

import (
	"os/exec"
	"syscall"
)

// dieWithTests lets the process die together with the tests' process.
func dieWithTests(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
