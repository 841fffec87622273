package vm

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/test/vm/osimage"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// osImages is where built operating systems are kept between runs.
const osImages = "../../build/osimage"

// What the machines are given. Both secrets are awkward on purpose; the password's hash is of no password.
const (
	passwordHash = "$6$slipway.test$0123456789ABCDEFabcdef./"
	appSecret    = `it's "quoted" %41 $HOME \n {{ü}} &amp;`
	motto        = `a file's "text" 100%`
)

// becoming is a machine, what it boots, and what it is to become.
type becoming struct {
	name     string
	firmware inventory.Firmware
	kind     osimage.Kind
	config   inventory.ImageConfig
	args     []string // of the image when there is a configuration
	document string   // that holds the secrets
	host     int      // last number of the address it gives itself, which DHCP does not lease
	// isReserved says that our DHCP gives it that very address: cloud-init has the network before it fetches the rest.
	isReserved bool
	isLong     bool // only make test-long has the time for it
}

func becomings() []becoming {
	const seed = "/var/lib/cloud/seed/nocloud"
	cloudInit := inventory.ImageConfig{Format: "cloud-init", Version: "22.4.2"}
	ign := inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}
	inInitrd := func(c inventory.ImageConfig, path string) inventory.ImageConfig {
		c.InitrdPath = path
		return c
	}
	ignArgs := []string{"ignition.firstboot", "ignition.platform.id=metal"}
	return []becoming{
		{
			name: "ci-url", firmware: inventory.BIOS, kind: osimage.CloudInit, config: cloudInit, document: "user-data",
			// With ds=nocloud, cloud-init 22.4 fetches the documents and then drops them.
			args: []string{"ds=nocloud-net;s=${config}"}, host: 21, isReserved: true,
		},
		{
			name: "ci-initrd", firmware: inventory.UEFI, kind: osimage.CloudInit, config: inInitrd(cloudInit, seed),
			document: pxe.ConfigArchive, host: 22, isLong: true,
		},
		{
			name: "ign-url", firmware: inventory.BIOS, kind: osimage.Ignition, config: ign, document: "config.ign",
			args: append(slices.Clone(ignArgs), "ignition.config.url=${config}"), host: 23, isLong: true,
		},
		{
			name: "ign-initrd", firmware: inventory.UEFI, kind: osimage.Ignition, config: inInitrd(ign, "/config.ign"),
			document: pxe.ConfigArchive, args: ignArgs, host: 24,
		},
	}
}

// hostName is what the profile says; the inventory has another name for the host.
func (b becoming) hostName() string { return "web-" + b.name }

// address is what the machine gives itself on the rack's network.
func (b becoming) address(rack netip.Prefix) netip.Addr {
	a := rack.Addr().As4()
	a[3] = byte(b.host)
	return netip.AddrFrom4(a)
}

// profileText is a layer with hostname, network, a user, secrets, files and units. The machine itself says on its
// console what has become of that.
func (b becoming) profileText(rack netip.Prefix, sshKey string) string {
	routes := "[{to: 0.0.0.0/0, via: GATEWAY}]"
	if b.kind == osimage.Ignition { // cloud-init says policy routes to images of Debian and Ubuntu only
		routes = "[{to: 0.0.0.0/0, via: GATEWAY}, {to: 0.0.0.0/0, via: GATEWAY, table: 200}]\n    rules: [{priority: 100, from: OWN/32, table: 200}]"
	}
	return strings.NewReplacer(
		"HOSTNAME", b.hostName(), "ADDRESS", netip.PrefixFrom(b.address(rack), rack.Bits()).String(),
		"OWN", b.address(rack).String(), "GATEWAY", rack.Addr().String(), "SSHKEY", sshKey, "MOTTO", motto,
	).Replace(strings.Replace(`
host:
  hostname: HOSTNAME
  timezone: Europe/Berlin
network:
  interfaces:
  - name: lan0
    mac: boot
    addresses: [ADDRESS]
    routes: ROUTES
storage:
  mounts: [{mountPoint: /var/cache/app, source: tmpfs, type: tmpfs, options: [size=16M, mode=0750]}]
sshd: {permitRootLogin: prohibit-password, ports: [22, 2222], settings: {X11Forwarding: "no"}}
users:
- name: ops
  shell: /bin/bash
  groups: [sudo]
  sudo: ALL=(ALL) NOPASSWD:ALL
  passwordHash: secret://ops-hash
  sshKeys: [SSHKEY]
files:
- path: /etc/app/secret
  mode: "0600"
  secret: secret://app
- path: /etc/app/app.json
  mode: "0600"
  text: |
    {"app": {{ secret "app" | json }}}
- path: /etc/app/motto
  mode: "0644"
  text: |
    MOTTO
- path: /etc/app/look
  mode: "0755"
  text: |
    #!/bin/sh
    say() { printf 'CHECK %s\n' "$*"; }
    say hostname "$(hostname)"
    say address "$(ip -4 -brief address show dev lan0 | tr -s ' ')"
    say route "$(ip -4 route show default | cut -d' ' -f1-5)"
    say user "$(id -nG ops) $(getent passwd ops | cut -d: -f7)"
    say key "$(cat /home/ops/.ssh/authorized_keys /home/ops/.ssh/authorized_keys.d/* 2>/dev/null)"
    say hash "$(getent shadow ops | cut -d: -f2)"
    say sudo "$(runuser -u ops -- sudo -n id -u)"
    say secret "$(stat -c '%a %U' /etc/app/secret) $(cat /etc/app/secret)"
    say motto "$(stat -c '%a %U' /etc/app/motto) $(cat /etc/app/motto)"
    say zone "$(readlink /etc/localtime)"
    say unit "$(systemctl is-active app.service) $(systemctl is-enabled app.service)"
    say command "$(cat /etc/app/ran)"
    say quoted "$(cat /etc/app/quoted)"
    say json "$(cat /etc/app/app.json)"
    say mount "$(findmnt -rno FSTYPE,SIZE /var/cache/app) $(stat -c %a /var/cache/app)"
    mkdir -p /run/sshd
    say sshd "$(/usr/sbin/sshd -T | grep -E '^(port|permitrootlogin|x11forwarding) ' | sort | tr '\n' ' ')"
    say rule "$(ip rule show priority 100 | tr '\t' ' ' | cut -d' ' -f1-5)"
    say table "$(ip -4 route show table 200 | cut -d' ' -f1-5)"
    say cmdline "$(cat /proc/cmdline)"
    say failed "$(systemctl --failed --plain --no-legend | cut -d' ' -f1 | tr '\n' ' ')"
    say memory "$(free -m | sed -n 's/  */ /g; s/^Mem: //p')"
    say end "$(cut -d' ' -f1 /proc/uptime)"
units:
- name: app.service
  enabled: true
  contents: |
    [Service]
    ExecStart=/bin/sleep infinity
    [Install]
    WantedBy=multi-user.target
commands:
- {name: mark, shell: "echo once >>/etc/app/ran"}
- name: quoted
  shell: |
    umask 077
    printf %s {{ secret "app" | shell }} >/etc/app/quoted
- {name: look, phase: post-bootstrap, shell: "/etc/app/look >/dev/ttyS0"}
`, "ROUTES", routes, 1))
}

// newSSHKey returns a public key as users have it in a file.
func newSSHKey(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, part := range [][]byte{[]byte("ssh-ed25519"), public} { // RFC 8709
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	return "ssh-ed25519 " + base64.StdEncoding.EncodeToString(b) + " ops@slipway.test"
}

// TestAMachineBecomesWhatItsProfileSays boots Debian with cloud-init and Debian with Ignition, each with its
// configuration behind a URL and in the initrd. It has a rack of its own and runs before the shared one is built. make test boots
// one of each pair, with both firmwares; make test-long boots the other two.
func TestAMachineBecomesWhatItsProfileSays(t *testing.T) {
	needVM(t)
	images := map[osimage.Kind]osimage.Image{}
	for _, kind := range []osimage.Kind{osimage.CloudInit, osimage.Ignition} {
		began := time.Now()
		img, err := osimage.Build(t.Context(), osImages, kind)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("image with %s: %.1f s", kind, time.Since(began).Seconds())
		images[kind] = img
	}
	cases := becomings()
	cfg := lab.Config{Out: os.Stderr, Executable: os.Getenv("SLIPWAY_BIN")}
	if cfg.Executable == "" {
		cfg.Executable, _ = filepath.Abs("../../bin/slipway") // make test-vm has built it
	}
	cfg.Specs = lab.Specs(len(cases))
	for i, c := range cases {
		s := &cfg.Specs[i]
		s.Name, s.Firmware, s.MemoryMiB = c.name, c.firmware, osimage.MemoryMiB
	}
	l, err := lab.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(explain(err))
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, value := range map[string]string{"ops-hash": passwordHash, "app": appSecret} {
		if _, err := l.API.SetSecret(t.Context(), name, wire.SecretInput{Value: &value}); err != nil {
			t.Fatal(explain(err))
		}
	}
	t.Run("group", func(t *testing.T) { // ends when all machines have
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				if c.isLong {
					needLong(t)
				}
				t.Parallel()
				key := newSSHKey(t)
				c.prepare(t, l, images[c.kind], l.Rack.Machines()[i].MAC, key)
				c.boot(t, l, key)
			})
		}
	})
}

// prepare imports the machine's image and writes its profile and host.
func (b becoming) prepare(t *testing.T, l *lab.Lab, img osimage.Image, mac inventory.MAC, sshKey string) {
	t.Helper()
	job, err := l.API.Import(t.Context(), client.ImportRequest{
		Name: b.name, OS: "custom", Release: "12", Arch: inventory.X8664, MemoryMiB: osimage.MemoryMiB,
		KernelArgs: []string{"console=ttyS0"}, Configs: []inventory.ImageConfig{b.config}, ConfigArgs: b.args,
		Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "linux", Source: absolute(t, img.Kernel)},
			{Role: inventory.RoleInitrd, Name: "initrd", Source: absolute(t, img.Initrd)},
		},
	})
	if err != nil {
		t.Fatal(explain(err))
	}
	for job, err = range l.API.WatchJob(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(explain(err))
		}
	}
	if job.State != "done" {
		t.Fatalf("import: %s\n%s", job.Error, job.Hint)
	}
	profile := inventory.Profile{Name: b.name, Image: b.name, Config: b.profileText(l.Rack.Address(), sshKey)}
	if _, err := l.API.Profiles.Put(t.Context(), b.name, profile); err != nil {
		t.Fatal(explain(err))
	}
	host := inventory.Host{Name: "inv-" + b.name, State: inventory.Available, Profile: b.name, NICs: []inventory.NIC{{MAC: mac}}}
	if _, err := l.API.Hosts.Create(t.Context(), host); err != nil {
		t.Fatal(explain(err))
	}
	if !b.isReserved {
		return
	}
	subnets, err := l.API.Subnets.List(t.Context(), client.Query{})
	if err != nil || len(subnets.Items) == 0 {
		t.Fatalf("subnets: %v, %v", subnets, err)
	}
	r := inventory.Reservation{Address: b.address(l.Rack.Address()), Subnet: subnets.Items[0].Name, MAC: mac}
	if _, err := l.API.Reservations.Create(t.Context(), r); err != nil {
		t.Fatal(explain(err))
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// boot switches the machine on and compares what it says of itself with its profile.
func (b becoming) boot(t *testing.T, l *lab.Lab, sshKey string) {
	m := start(t, l, b.name)
	began := time.Now()
	var s inventory.BootSession
	m.until("it reports up, or a failure", 15*time.Minute, func(ctx context.Context) bool {
		s, _ = m.session(ctx)
		return s.Outcome != ""
	})
	events := m.events(s.ID)
	t.Logf("%s: reported after %.1f s:%s", b.name, time.Since(began).Seconds(), timing(events))
	if s.Outcome != inventory.OutcomeArrived || s.Image != b.name || s.Config == "" {
		t.Fatalf("session %+v", s)
	}
	if got := detailOf(events, inventory.EventReported); !strings.HasPrefix(got, "up") {
		t.Errorf("it reported %q", got)
	}
	h, err := l.API.Hosts.Get(t.Context(), string(m.MAC))
	if err != nil || h.State != inventory.Active {
		t.Errorf("host %+v, %v", h, err)
	}
	var said map[string]string
	m.until("it says what it has become", time.Minute, func(context.Context) bool {
		console, err := m.Console()
		said = checks(console)
		return err == nil && said["end"] != ""
	})
	t.Logf("%s: Linux needed %s s; memory %s", b.name, said["end"], said["memory"])
	b.compare(t, l, said, s, sshKey)
	b.askAgain(t, l, m, s)
}

var checkRE = regexp.MustCompile(`CHECK ([a-z]+) ?([^\r\n]*)`)

// checks reads what a machine says of itself on its console.
func checks(console []byte) map[string]string {
	said := map[string]string{}
	for _, m := range checkRE.FindAllSubmatch(console, -1) {
		said[string(m[1])] = strings.TrimSpace(string(m[2]))
	}
	return said
}

func (b becoming) compare(t *testing.T, l *lab.Lab, said map[string]string, s inventory.BootSession, sshKey string) {
	t.Helper()
	rack := l.Rack.Address()
	wants := map[string]string{
		"hostname": b.hostName(),
		"address":  fmt.Sprintf("lan0 UP %s/%d", b.address(rack), rack.Bits()),
		"route":    fmt.Sprintf("default via %s dev lan0", rack.Addr()),
		"user":     "ops sudo /bin/bash",
		"key":      sshKey,
		"hash":     passwordHash,
		"sudo":     "0",
		"secret":   "600 root " + appSecret,
		"motto":    "644 root " + motto,
		"unit":     "active enabled",
		"command":  "once",
		"quoted":   appSecret,
		"json":     `{"app": "it's \"quoted\" %41 $HOME \\n {{\u00fc}} \u0026amp;"}`,
		"mount":    "tmpfs 16M 750",
		"sshd":     "permitrootlogin without-password port 22 port 2222 x11forwarding no",
		"rule":     "", "table": "",
		"failed": "",
	}
	if b.kind == osimage.Ignition {
		wants["rule"], wants["table"] = fmt.Sprintf("100: from %s lookup 200", b.address(rack)), wants["route"]
	}
	for what, want := range wants {
		if said[what] != want {
			t.Errorf("%s: %s is %q, want %q", b.name, what, said[what], want)
		}
	}
	if !strings.HasSuffix(said["zone"], "/zoneinfo/Europe/Berlin") {
		t.Errorf("%s: its time zone is %q", b.name, said["zone"])
	}
	// A URL in the kernel's arguments is there for every user of the machine to read.
	hasURL := strings.Contains(said["cmdline"], string(s.ID))
	if said["cmdline"] == "" || hasURL != (b.config.InitrdPath == "") {
		t.Errorf("%s: its kernel's arguments are %q", b.name, said["cmdline"])
	}
}

// askAgain asks for the machine's configuration once more, now that it has come up: nobody gets it, and it is an issue.
func (b becoming) askAgain(t *testing.T, l *lab.Lab, m machine, s inventory.BootSession) {
	t.Helper()
	base := "http://" + l.Rack.Address().Addr().String()
	address := pxe.ConfigURL(base, s.ID, "", b.document)
	if b.document == pxe.ConfigArchive {
		address = pxe.URL(base, s.ID, b.document)
	}
	status, body := get(t, l, address)
	if status != http.StatusServiceUnavailable || strings.Contains(body, "quoted") {
		t.Errorf("%s: %s answers %d once more: %.200s", b.name, address, status, body)
	}
	m.until("the refusal is in its timeline", 10*time.Second, func(context.Context) bool {
		return detailOf(m.events(s.ID), inventory.EventSessionRefused) != ""
	})
	m.until("the refusal is an issue", 10*time.Second, func(ctx context.Context) bool {
		page, err := l.API.Issues.List(ctx, client.Query{Host: string(m.MAC)})
		return err == nil && slices.ContainsFunc(page.Items, func(i inventory.Issue) bool { return i.Type == inventory.IssueSecretRefused })
	})
}

// get fetches something as a program on the server's own machine does.
func get(t *testing.T, l *lab.Lab, address string) (status int, body string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	if err := l.Rack.Do(func() (err error) { // the socket stays in the rack's network
		conn, err = net.DialTimeout("tcp4", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")), 10*time.Second)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	c := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
