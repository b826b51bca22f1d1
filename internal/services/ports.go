package services

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// loopback is where all servers listen.
const loopback = "127.0.0.1"

// Ports are taken from below those that systems give to connections: while a
// server is down, a connection could get its port, a client's own attempt to
// reach it even.
const (
	firstPort = 20_000
	lastPort  = 31_999
	// maxPortTries bounds the search.
	maxPortTries = 1000
)

// freePorts finds ports that nobody listens on, each another.
func freePorts(n int) (ports []int, err error) {
	for range maxPortTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		defer l.Close() // all are held until all are found
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d free ports were found among %d to %d in %d tries", n, firstPort, lastPort, maxPortTries)
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
