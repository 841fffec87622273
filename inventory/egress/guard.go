package egress

import "net"

// guarded is a connection over which nothing is sent while may returns an error.
type guarded struct {
	net.Conn
	may func() error
}

// Write implements net.Conn.
func (g guarded) Write(b []byte) (int, error) {
	if err := g.may(); err != nil {
		return 0, err
	}
	return g.Conn.Write(b)
}
