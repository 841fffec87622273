package dhcp

import "net/netip"

// heardLine says in one line for the timeline where a packet came from.
func heardLine(x *exchange) string {
	line := "on " + x.port.link.name
	if x.isRelayed() {
		line += " through relay " + x.giaddr.String()
	}
	if x.isPXE {
		line += ", port 4011"
	}
	return line
}

// grantLine says in one line for the timeline what a machine was given.
func grantLine(a netip.Addr, file string) string {
	line := a.String()
	if !a.IsValid() {
		line = "no address"
	}
	if file != "" {
		line += ", boot file " + file
	}
	return line
}
