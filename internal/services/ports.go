package services

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// loopback is where all servers listen.
const loopback = "127.0.0.1"

// freePorts finds ports that nobody listens on, each another.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// busy tells whether somebody listens on a port.
func busy(port int) bool {
	c, err := net.DialTimeout("tcp", address(port), time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
