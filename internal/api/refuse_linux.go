package api

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// refuseNew has the kernel drop the packet with which a client begins a connection
// (SYN without ACK), and no other. Closing the listener alone resets what waits to
// be accepted, of which clients believe that it is connected. Where the kernel
// does not do this, that is what happens to those few.
func refuseNew(ln net.Listener) {
	const flags, syn, ack, pass = 13, 0x02, 0x10, 0xffffffff // RFC 9293: the flags' byte of the header
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: pass},
	}
	socket, ok := ln.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
}

// unaccepted returns how many connections are made and wait to be accepted.
func unaccepted(ln net.Listener) (waiting int) {
	socket, ok := ln.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			waiting = int(info.Unacked) // which is that of a socket that listens
		}
	})
	return waiting
}
