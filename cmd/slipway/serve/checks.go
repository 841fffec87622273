package serve

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcp"
)

const tftpPort = 69

// facts reads the machine as this configuration would use it.
func (c *Config) facts(ports []doctor.Port) *doctor.Facts {
	f := doctor.Read(c.Interfaces, c.DataDir, ports)
	f.HasServer = c.storage().IsServer()
	f.Disk.IsForFiles = f.HasServer
	if !c.Advertise { // then nobody misses the address that advertisements are sent from
		for i := range f.Interfaces {
			f.Interfaces[i].HasLinkLocal = true
		}
	}
	return f
}

// ports are those that the doors need.
func (c *Config) ports() []doctor.Port {
	all := []doctor.Port{
		{Proto: "udp", Number: 67, For: "DHCP", Interfaces: c.Interfaces},
		{Proto: "udp", Number: 4011, For: "DHCP with other servers", Interfaces: c.Interfaces},
		{Proto: "udp", Number: tftpPort, For: "TFTP"},
		{Proto: "tcp", Number: c.BootPort, For: "the boot listener"},
	}
	if c.BootTLSPort != 0 {
		all = append(all, doctor.Port{Proto: "tcp", Number: c.BootTLSPort, For: "the boot listener over TLS"})
	}
	if at, err := netip.ParseAddrPort(c.AdminListen); err == nil {
		all = append(all, doctor.Port{Proto: "tcp", Number: int(at.Port()), For: "the admin listener (--admin-listen)", Address: at.Addr()})
	}
	return all
}

// foreign asks on an interface for DHCP servers other than ourselves.
func (c *Config) foreign(ctx context.Context, iface string) ([]netip.Addr, error) {
	ours := lookup.AddressesOf(c.Interfaces)
	servers, err := dhcp.Foreign(ctx, iface, dhcp.AnswersWithin)
	return slices.DeleteFunc(servers, func(s netip.Addr) bool { return slices.Contains(ours, s) }), err
}

// checkAuthority says whether iPXE takes certificates of this site's authority, where the boot door speaks TLS.
func (c *Config) checkAuthority(now time.Time) []Check {
	text, err := os.ReadFile(filepath.Join(c.DataDir, keys.BootCA.Files.Cert))
	if c.BootTLSPort == 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	broken := Check{Name: "certificate " + keys.BootCA.Files.Cert, Status: failed, Hint: "start the server: it writes the file again"}
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		broken.Detail = "cannot be read"
		return []Check{broken}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		broken.Detail = err.Error()
		return []Check{broken}
	}
	return []Check{doctor.Certificate(keys.BootCA.Files.Cert, cert, now)}
}

// Check is one line of the self-check.
type Check = doctor.Check

const (
	ok      = doctor.OK
	warning = doctor.Warning
	failed  = doctor.Failed
)

// printChecks writes the checks for a terminal.
func printChecks(out io.Writer, checks []Check) {
	for _, k := range checks {
		fmt.Fprintf(out, "%-8s %-22s %s\n", k.Status, k.Name, k.Detail)
		if k.Hint != "" {
			fmt.Fprintf(out, "%-8s %-22s → %s\n", "", "", k.Hint)
		}
	}
}

// named says of a port that is taken which program has it.
func (c *Config) named(err error, proto string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	f := c.facts(c.ports())
	// EADDRINUSE names neither the port nor its owner. The same judgement as in the doctor finds both in /proc.
	for _, p := range f.Ports {
		if k := doctor.JudgePort(p, f.Sockets, os.Getpid()); p.Proto == proto && k.Status == failed {
			return &inventory.Error{Kind: inventory.Conflict, Msg: k.Name + " is " + k.Detail, Hint: k.Hint, Err: err}
		}
	}
	return err
}
