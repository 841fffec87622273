// Package network has the operations of the REST API on subnets, ranges, reservations, leases and static addresses, and on the other DHCP
// servers of a network.
//
// Start reading at Register, then network.go.
package network

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addSubnets()
	s.addReservations()
	s.addLeases()
	s.addAddresses()
	s.addNetworks()
}
