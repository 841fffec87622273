// Package watch notices what does not happen. Expectations say what should happen next with a host, and a Diagnoser why it does
// not. A Watch finds boots that have stopped, and Silences find machines that get no answer to DHCP. Intruders are other DHCP
// servers, and machines that use our addresses.
package watch
