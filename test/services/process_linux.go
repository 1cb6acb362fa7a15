package services

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sigFreeze = syscall.SIGSTOP
	sigThaw   = syscall.SIGCONT
)

//go:embed keep.sh
var keep string

// A process is a running server and its keeper, a shell. So no goroutine or thread of this process has to
// live as long as the server.
type process struct {
	keeper   *exec.Cmd
	lifeline io.WriteCloser // the keeper's input
	pid      int            // the server's process id
}

// launch starts a server in a directory. If account is not empty, the server runs as that account. The keeper
// ends the server with signal, such as KILL.
func launch(directory, account, signal string, command []string) (*process, error) {
	p := &process{keeper: exec.Command("sh", append([]string{"-c", keep, "keep", directory, signal}, command...)...)}
	p.keeper.Dir, p.keeper.Env = directory, environment(directory)
	var err error
	if p.keeper.SysProcAttr, err = attributes(account); err != nil {
		return nil, err
	}
	if p.lifeline, err = p.keeper.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.keeper.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		p.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the process id of the server: %w", err), p.end(false))
	}
	return p, nil
}

// attributes has a process run as an account. The process has its own process group, so that only the test
// process gets an interrupt from the terminal.
func attributes(account string) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Setpgid: true}
	if account == "" {
		return a, nil
	}
	uid, gid, err := ids(account)
	if err != nil {
		return nil, err
	}
	a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return a, nil
}

func ids(account string) (uid, gid int, err error) {
	u, err := user.Lookup(account)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// give makes an account the owner of a directory.
func give(directory, account string) error {
	if account == "" {
		return nil
	}
	uid, gid, err := ids(account)
	if err != nil {
		return err
	}
	return os.Chown(directory, uid, gid)
}

// end ends the server and waits for it. It removes the directory unless kept is set.
func (p *process) end(kept bool) error {
	if kept {
		if _, err := io.WriteString(p.lifeline, "end\n"); err != nil {
			return err
		}
	}
	return errors.Join(p.lifeline.Close(), p.keeper.Wait())
}

// ended reports whether the server has ended, by itself or by a signal.
func (p *process) ended() bool {
	state, _ := status(p.pid)
	return state == 'Z' || state == 0
}

// stopped reports whether the server is stopped or has ended.
func (p *process) stopped() bool {
	state, _ := status(p.pid)
	return state == 'T' || state == 'Z' || state == 0
}

// removeSharedMemory removes a shared memory segment, if there is one with this id.
func removeSharedMemory(id int) error {
	_, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIDRM) {
		return nil
	}
	return err
}

func (p *process) signal(s syscall.Signal) error { return syscall.Kill(p.pid, s) }

// CPU returns the processor time that the server has used, and those processes that it has started and that still run.
func (s *Server) CPU() (sum time.Duration, err error) {
	return sum, s.tell("measure", func(p *process) error {
		family, err := descendants(p.pid)
		if err != nil {
			return err
		}
		for _, pid := range append(family, p.pid) {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				continue // it has ended
			}
			// The fields behind the name in brackets: utime and stime are the 12th and 13th, in ticks of 10 ms.
			fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			for _, ticks := range fields[11:13] {
				n, err := strconv.ParseInt(ticks, 10, 64)
				if err != nil {
					return err
				}
				sum += time.Duration(n) * 10 * time.Millisecond
			}
		}
		return nil
	})
}

// signalAll signals all processes that the server has started, and then the server itself. It returns those
// processes.
func (p *process) signalAll(s syscall.Signal) (family []int, err error) {
	if family, err = descendants(p.pid); err != nil {
		return nil, err
	}
	for _, pid := range family {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, err
		}
	}
	return family, p.signal(s)
}

// allEnded reports whether processes have ended. A process that is killed while it waits for the disk keeps
// its memory until the disk has answered.
func allEnded(pids []int) bool {
	for _, pid := range pids {
		if state, _ := status(pid); state != 'Z' && state != 0 {
			return false
		}
	}
	return true
}

// descendants returns the children of a process, and their descendants.
func descendants(pid int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, file := range files {
		child, err := strconv.Atoi(filepath.Base(file))
		if err != nil {
			return nil, err
		}
		if state, parent := status(child); state != 0 {
			children[parent] = append(children[parent], child)
		}
	}
	family := children[pid]
	for n := 0; n < len(family); n++ {
		family = append(family, children[family[n]]...)
	}
	return family, nil
}

// status returns the state of a process, Z if it has ended and T if it is stopped, and the process that
// started it. The state is 0 if there is no such process. See proc_pid_stat(5).
func status(pid int) (state byte, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	rest := text[strings.LastIndexByte(string(text), ')')+1:]
	if _, err := fmt.Sscanf(string(rest), " %c %d", &state, &parent); err != nil {
		return 0, 0
	}
	return state, parent
}
