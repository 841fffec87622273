package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

var (
	askRE      = regexp.MustCompile(`/boot/[0-9a-f]{32}/ask`)
	scriptRE   = regexp.MustCompile(`(?m)^chain .*http://[0-9.]+(/boot/(?:[0-9a-f]{32}/)?script)\?`)
	artefactRE = regexp.MustCompile(`(?m)^(?:kernel|initrd) .*http://[0-9.]+(/boot/[0-9a-f]{32}/artefact/[0-9a-f]{64}/\S+)`)
	lengthRE   = regexp.MustCompile(`(?im)^content-length: *([0-9]+)\r?$`)
	laterRE    = regexp.MustCompile(`(?im)^retry-after: *([0-9]+)\r?$`)
)

// boot is what iPXE does over one connection: it fetches its first script, tells what machine it is and gets the
// decision, and fetches the kernel if there is one. It returns how long the decision took.
func (m *scriptMachine) boot(server netip.AddrPort) (took time.Duration, err error) {
	c, err := dial(m.addr, server)
	if err != nil {
		return 0, err
	}
	defer c.close()
	if took, err = m.fetchScripts(c); err != nil || m.kind != bootsImage {
		return took, err
	}
	if got, err := c.get(m.kernel); err != nil || string(got) != "1" {
		return took, fmt.Errorf("kernel %q: %w", got, err)
	}
	return took, nil
}

// decide fetches the scripts alone.
func (m *scriptMachine) decide(server netip.AddrPort) error {
	c, err := dial(m.addr, server)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = m.fetchScripts(c)
	return err
}

func (m *scriptMachine) fetchScripts(c *conversation) (took time.Duration, err error) {
	first, err := c.get(m.ask)
	if err != nil {
		return 0, err
	}
	path := scriptRE.FindSubmatch(first)
	if path == nil {
		return 0, fmt.Errorf("the first script names no second:\n%s", first)
	}
	began := time.Now()
	script, err := c.get(string(path[1]) + m.query)
	took = time.Since(began)
	if err != nil {
		return took, err
	}
	want := map[bootKind]string{
		bootsDisk: "installed: it boots from its own disk", bootsImage: "profile web gives it image " + m.image, bootsUnknown: "not accepted: it boots from its own disk",
	}[m.kind]
	if !bytes.Contains(script, []byte(want)) {
		return took, fmt.Errorf("instead of %q the script says:\n%s", want, script)
	}
	if m.kind != bootsImage {
		return took, nil
	}
	files := artefactRE.FindAllSubmatch(script, -1)
	if len(files) == 0 {
		return took, fmt.Errorf("the script names no kernel:\n%s", script)
	}
	m.kernel, m.initrd = string(files[0][1]), string(files[len(files)-1][1])
	return took, nil
}

// arrive reports for each machine that was given an image that its system is up: to boot it again and again without that
// is a loop, which Slipway breaks.
func (r *scriptRig) arrive(machines []scriptMachine) error {
	server := netip.AddrPortFrom(netip.MustParseAddr(serverAddress), slipwayPort)
	var g errgroup.Group
	for part := range slices.Chunk(machines, max(1, len(machines)/scriptClients)) {
		g.Go(func() error {
			return onClientCPU(r.net.Client, func() error {
				for i := range part {
					if part[i].kind != bootsImage {
						continue
					}
					c, err := dial(part[i].addr, server)
					if err != nil {
						return err
					}
					session, _, _ := strings.Cut(part[i].kernel, "/artefact/")
					_, err = c.get(session + "/report?step=up")
					c.close()
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return g.Wait()
}

// load fetches a file of that size and lets the kernel throw it away. Told to come later, the machine does.
func (m *scriptMachine) load(ctx context.Context, server netip.AddrPort, path string, size int64) error {
	for ctx.Err() == nil {
		wait, err := m.loadOnce(server, path, size)
		if err != nil || wait == 0 {
			return err
		}
		time.Sleep(wait)
	}
	return ctx.Err()
}

func (m *scriptMachine) loadOnce(server netip.AddrPort, path string, size int64) (wait time.Duration, err error) {
	c, err := dial(m.addr, server)
	if err != nil {
		return 0, err
	}
	defer c.close()
	head, got, err := c.head(path)
	if err != nil {
		return 0, err
	}
	if later := laterRE.FindSubmatch(head); bytes.HasPrefix(head, []byte("HTTP/1.1 503 ")) && later != nil {
		seconds, _ := strconv.Atoi(string(later[1]))
		return time.Duration(seconds) * time.Second, nil
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return 0, fmt.Errorf("%s: %s", path, head)
	}
	buf := make([]byte, 256<<10)
	for have := int64(got); have < size; {
		n := 0
		err := again(func() (err error) { n, _, err = unix.Recvfrom(c.fd, buf, unix.MSG_TRUNC); return err })
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%s: %w after %d bytes", path, err, have)
		}
		have += int64(n)
	}
	return 0, nil
}

// discover sends the DISCOVERs of the known machines' iPXE through a relay agent, and takes from the offers which
// session each has. A boot begins with that.
func (r *scriptRig) discover(machines []scriptMachine) error {
	return onClientCPU(r.net.Client, func() error {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(clientAddress), Port: 67})
		if err != nil {
			return fmt.Errorf("relay DHCP: %w", err)
		}
		defer conn.Close()
		buf := make([]byte, 2048)
		for i := range machines {
			m := &machines[i]
			if m.kind == bootsUnknown {
				continue
			}
			if m.ask, err = discover(conn, m.mac, uint32(i), buf); err != nil {
				return fmt.Errorf("DISCOVER of %s: %w; the server said: %s", m.mac, err, r.server.tail())
			}
		}
		return nil
	})
}

func discover(conn *net.UDPConn, mac inventory.MAC, xid uint32, buf []byte) (ask string, err error) {
	p, err := ipxeDiscover(mac, xid)
	if err != nil {
		return "", err
	}
	for range 5 {
		if _, err := conn.WriteTo(p, &net.UDPAddr{IP: net.ParseIP(serverAddress), Port: 67}); err != nil {
			return "", fmt.Errorf("send it: %w", err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		for {
			n, err := conn.Read(buf)
			if err != nil {
				break // asked again
			}
			if n > 240 && binary.BigEndian.Uint32(buf[4:]) == xid {
				if ask = string(askRE.Find(buf[:n])); ask == "" {
					return "", fmt.Errorf("the offer names no script: %q", buf[:n])
				}
				return ask, nil
			}
		}
	}
	return "", errors.New("no offer")
}

// ipxeDiscover is the DISCOVER of iPXE under UEFI, as a relay agent passes it on.
func ipxeDiscover(mac inventory.MAC, xid uint32) ([]byte, error) {
	hw, err := net.ParseMAC(string(mac))
	if err != nil {
		return nil, err
	}
	p := make([]byte, 240)
	p[0], p[1], p[2], p[3] = 1, 1, 6, 1
	binary.BigEndian.PutUint32(p[4:], xid)
	copy(p[24:], net.ParseIP(clientAddress).To4())
	copy(p[28:], hw)
	copy(p[236:], []byte{99, 130, 83, 99})
	p = append(p, 53, 1, 1)
	p = append(append(p, 60, 32), "PXEClient:Arch:00007:UNDI:003010"...)
	p = append(append(p, 77, 4), "iPXE"...)
	p = append(p, 93, 2, 0, 7, 94, 3, 1, 3, 10)
	p = append(p, 55, 8, 1, 3, 6, 12, 15, 43, 66, 67)
	p = append(p, 175, 6, 19, 1, 1, 24, 1, 1, 255)
	return append(p, make([]byte, max(0, 300-len(p)))...), nil
}

// conversation is a connection over which one machine asks again and again, as iPXE does.
type conversation struct {
	fd  int
	buf []byte
}

// dial connects from an address. It calls the kernel directly, so that what is measured is the server and not a
// scheduler on our side.
func dial(from netip.Addr, to netip.AddrPort) (*conversation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	limit := unix.NsecToTimeval(int64(getLimit))
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: from.As4()}),
	)
	if err == nil {
		err = again(func() error {
			return unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
		})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	return &conversation{fd: fd, buf: make([]byte, 0, 8<<10)}, nil
}

func (c *conversation) close() { unix.Close(c.fd) }

// get asks for a path and returns the body of the answer, which must be a 200 with its length.
func (c *conversation) get(path string) ([]byte, error) {
	head, body, err := c.ask(path)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return nil, fmt.Errorf("%s: %s\n%s", path, head, body)
	}
	return body, nil
}

func (c *conversation) ask(path string) (head, body []byte, err error) {
	head, got, err := c.head(path)
	if err != nil {
		return nil, nil, err
	}
	said := lengthRE.FindSubmatch(head)
	if said == nil {
		return nil, nil, fmt.Errorf("the answer to %s has no length: %s", path, head)
	}
	length, _ := strconv.Atoi(string(said[1]))
	all := c.buf
	for headN := len(all) - got; len(all) < headN+length; {
		if all, err = c.read(all); err != nil {
			return nil, nil, fmt.Errorf("read the answer to %s: %w", path, err)
		}
	}
	c.buf = all
	return all[:len(head)], all[len(head) : len(head)+length], nil
}

// head sends a request and reads until the end of the answer's head; got is how many bytes of the body came along.
func (c *conversation) head(path string) (head []byte, got int, err error) {
	request := "GET " + path + " HTTP/1.1\r\nHost: " + serverAddress + "\r\nConnection: keep-alive\r\nUser-Agent: iPXE/2.0.0\r\n\r\n"
	if err := again(func() error { _, err := unix.Write(c.fd, []byte(request)); return err }); err != nil {
		return nil, 0, fmt.Errorf("ask for %s: %w", path, err)
	}
	for all := c.buf[:0]; ; {
		if all, err = c.read(all); err != nil {
			return nil, 0, fmt.Errorf("read the answer to %s: %w", path, err)
		}
		if at := bytes.Index(all, []byte("\r\n\r\n")); at >= 0 {
			c.buf = all
			return all[:at+4], len(all) - at - 4, nil
		}
	}
}

func (c *conversation) read(all []byte) ([]byte, error) {
	all = slices.Grow(all, 4<<10)
	n := 0
	err := again(func() (err error) { n, err = unix.Read(c.fd, all[len(all):cap(all)]); return err })
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return all[:len(all)+max(n, 0)], err
}
