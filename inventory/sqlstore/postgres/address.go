package postgres

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/inventory"
)

// Address is what a URL says about the way to a database. It never has the password.
type Address struct {
	URL         string // with servers, user and database only
	Database    string
	HasPassword bool // in the URL
	ServerN     int
	// Plain are the servers on the network to which connections may go without TLS, and Unverified those whose certificate is not checked.
	Plain, Unverified []string
	Local             []string // servers that only programs on this machine reach
}

// ReadAddress reads a URL. The error is Invalid, and never quotes the URL.
func ReadAddress(url string) (Address, error) {
	to, err := parse(url)
	if err != nil {
		return Address{}, err
	}
	a := Address{Database: to.Database, HasPassword: hasPassword(url)}
	look := func(host string, port uint16, with *tls.Config) {
		at := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if !slices.Contains(strings.Split(a.URL, ","), at) {
			a.URL = strings.TrimPrefix(a.URL+","+at, ",")
			a.ServerN++
		}
		switch {
		case isLocal(host):
			if !slices.Contains(a.Local, host) {
				a.Local = append(a.Local, host)
			}
		case with == nil && !slices.Contains(a.Plain, host):
			a.Plain = append(a.Plain, host)
		case with != nil && with.InsecureSkipVerify && with.VerifyPeerCertificate == nil && !slices.Contains(a.Unverified, host):
			a.Unverified = append(a.Unverified, host)
		}
	}
	look(to.Host, to.Port, to.TLSConfig)
	for _, f := range to.Fallbacks { // the other servers, and the same ones without TLS
		look(f.Host, f.Port, f.TLSConfig)
	}
	a.URL = "postgres://" + to.User + "@" + a.URL + "/" + to.Database
	return a, nil
}

// parse reads a URL, and the variables of the environment that PostgreSQL's own programs read.
func parse(url string) (*pgx.ConnConfig, error) {
	refused := &inventory.Error{
		Kind: inventory.Invalid, Msg: "cannot read the address of the database",
		Hint: "write it as postgres://user@host:5432/slipway?sslmode=verify-full",
	}
	// Other forms exist. One form keeps documents short, and shows where a password would be.
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		refused.Msg += ": it does not begin with postgres://"
		return nil, refused
	}
	to, err := pgx.ParseConfig(url)
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		refused.Msg = "cannot read the file " + file.Path + " that the address of the database names: " + file.Err.Error()
		refused.Hint = "check sslrootcert, sslcert and sslkey in the address, and who may read these files"
		return nil, refused
	}
	if err != nil {
		if strings.Contains(err.Error(), "sslmode is invalid") {
			refused.Msg += ": it has no sslmode of PostgreSQL"
			refused.Hint = "use disable, prefer, require, verify-ca or verify-full"
			return nil, refused
		}
		if !hasPassword(url) { // the text of the error may have parts of the URL
			refused.Msg += ": " + reason(err)
		}
		return nil, refused
	}
	return to, nil
}

// Password returns the password for a URL: that in the URL, in PGPASSWORD or in the file .pgpass, "" for none. The error is Invalid, and
// never quotes the URL.
func Password(url string) (string, error) {
	to, err := parse(url)
	if err != nil {
		return "", err
	}
	return to.Password, nil
}

// hasPassword reports whether a URL has a password: behind the user, or among the options.
func hasPassword(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	way, options, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(way, "@"); at >= 0 {
		if _, password, found := strings.Cut(way[:at], ":"); found && password != "" {
			return true
		}
	}
	for option := range strings.SplitSeq(options, "&") {
		if key, _, _ := strings.Cut(option, "="); key == "password" || key == "sslpassword" {
			return true
		}
	}
	return false
}

// isLocal reports whether packets to a host stay on this machine. A host that begins with a slash is the folder of a Unix socket.
func isLocal(host string) bool {
	at, err := netip.ParseAddr(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || err == nil && at.IsLoopback()
}

// reason is the innermost of the errors of a connection: "connection refused", and not the whole way to it.
func reason(err error) string {
	for {
		switch e := err.(type) { //nolint:errorlint // it goes down the chain itself
		case *fs.PathError: // it names the file
			return inventory.Clean(e.Error(), 200)
		case interface{ Unwrap() error }:
			if next := e.Unwrap(); next != nil {
				err = next
				continue
			}
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				err = all[len(all)-1]
				continue
			}
		}
		return inventory.Clean(err.Error(), 200)
	}
}
