// Package cutproxy is a TCP proxy for tests: it forwards connections to a server,
// and cuts, stalls or refuses them where it is told to, down to the byte and to
// the protocol's message.
//
// What becomes of a connection is its [Fate], which a function decides when the
// connection is accepted; connections are numbered from 1. With a [Protocol] the
// proxy tells messages apart, records where each begins and ends, and asks
// [Fate.When] what to do about each.
//
// Kafka's clients connect to the addresses that brokers advertise. There are two
// ways to have them come by the proxy: the broker advertises [Proxy.Addr] for one
// of its listeners, and [Proxy.Forward] names that listener's own address; or the
// client dials by [Proxy.Dial], which takes each connection through the proxy to
// the address that the client asked for.
package cutproxy
