package doctor

import (
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/pxe"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestJudges(t *testing.T) {
	up := Interface{Name: "eth1", IsThere: true, IsUp: true, HasLink: true, MTU: 1500, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, HasLinkLocal: true}
	with := func(alter func(*Interface)) Check {
		i := up
		alter(&i)
		return JudgeInterface(i, []string{"eth0"})
	}
	disk := Disk{Dir: "/d", FreeBytes: 9 << 30, FreeFileN: 1000, FileN: 2000}
	diskWith := func(alter func(*Disk)) Check {
		d := disk
		alter(&d)
		return DataDir(d)
	}
	for name, tc := range map[string]struct {
		got                  Check
		status, detail, hint string
	}{
		"an interface that is up":         {with(func(*Interface) {}), OK, "10.0.0.1/24, MTU 1500", ""},
		"one that is not there":           {with(func(i *Interface) { i.IsThere = false }), Failed, "does not exist", "eth0"},
		"one that cannot be read":         {with(func(i *Interface) { i.IsThere, i.Err = false, unix.EMFILE }), Warning, "too many open files", "again"},
		"one without address":             {with(func(i *Interface) { i.Prefixes = nil }), Failed, "no IPv4 address", "ip addr add"},
		"one that is down":                {with(func(i *Interface) { i.IsUp = false }), Failed, "is down", "ip link set eth1 up"},
		"one without link":                {with(func(i *Interface) { i.HasLink = false }), Warning, "no link", "cable"},
		"one with jumbo frames":           {with(func(i *Interface) { i.MTU = 9000 }), Warning, "MTU 9000", "mtu 1500"},
		"one in a tunnel":                 {with(func(i *Interface) { i.MTU = 1450 }), Warning, "MTU 1450", "blocks of 1418"},
		"one of the least MTU":            {with(func(i *Interface) { i.MTU = leastMTU }), Warning, "MTU 1280", "blocks of 1248"},
		"one too narrow to boot":          {with(func(i *Interface) { i.MTU = 576 }), Failed, "MTU 576", "mtu 1500"},
		"a disk with room":                {diskWith(func(*Disk) {}), OK, "9216 MiB free", ""},
		"one nearly full":                 {diskWith(func(d *Disk) { d.FreeBytes = 500 << 20 }), Warning, "500 MiB", "image prune"},
		"one that is full":                {diskWith(func(d *Disk) { d.FreeBytes = 15 << 20 }), Failed, "15 MiB", "leases cannot be stored"},
		"one that takes no more files":    {diskWith(func(d *Disk) { d.FreeFileN = 3 }), Failed, "no more files", "remove some"},
		"one with just enough":            {diskWith(func(d *Disk) { d.FreeBytes = enoughBytes }), OK, "1024 MiB", ""},
		"one with just room for leases":   {diskWith(func(d *Disk) { d.FreeBytes, d.FreeFileN = leastBytes, leastFiles }), Warning, "16 MiB", "image prune"},
		"one that counts no files":        {diskWith(func(d *Disk) { d.FreeFileN, d.FileN = 0, 0 }), OK, "", ""},
		"one full beside a server":        {diskWith(func(d *Disk) { d.FreeBytes, d.IsForFiles = 1<<20, true }), Failed, "1 MiB", "image prune; images"},
		"no more files beside a server":   {diskWith(func(d *Disk) { d.FreeFileN, d.IsForFiles = 1, true }), Failed, "no more files", "with: slipway image"},
		"one that is read-only":           {diskWith(func(d *Disk) { d.IsReadOnly = true }), Failed, "read-only", "remount,rw"},
		"a disk that is not there":        {diskWith(func(d *Disk) { d.Err = errors.New("no such folder") }), Failed, "no such folder", "--data-dir"},
		"a folder before the first start": {diskWith(func(d *Disk) { d.IsNew = true }), OK, "made by the first slipway serve, 9216 MiB", ""},
		"one to be made on a full disk":   {diskWith(func(d *Disk) { d.IsNew, d.FreeBytes = true, 1<<20 }), Failed, "1 MiB free", "free some"},
		"a file in its place":             {diskWith(func(d *Disk) { d.IsFile = true }), Failed, "is a file", "--data-dir"},
		"a key that others can read":      {diskWith(func(d *Disk) { d.OpenKey = "/d/secret.key" }), Failed, "others can read", "chmod 0600"},
		"a database that is not there":    {JudgeDatabase(Database{Path: "/d/slipway.db"}), OK, "first slipway serve", ""},
		"one that cannot be written":      {JudgeDatabase(Database{IsThere: true, Err: unix.EACCES}), Failed, "permission denied", "chown"},
		"a clock before our time":         {JudgeClock(now.AddDate(-30, 0, 0), Clock{}, now), Failed, "1996", "NTP"},
		"one before our time, at first":   {JudgeClock(now.AddDate(-30, 0, 0), Clock{}, time.Time{}), Failed, "1996", "before this program"},
		"one of which nobody can tell":    {JudgeClock(now, Clock{}, time.Time{}), OK, "2026", ""},
		"one that nobody keeps":           {JudgeClock(now, Clock{IsKnown: true}, now), OK, "no NTP client", "chrony"},
		"one that went back":              {JudgeClock(now, Clock{}, now.Add(26*time.Hour)), Failed, "written 26h0m0s later", "NTP client"},
		"one a little later":              {JudgeClock(now, Clock{}, now.Add(clockSlack)), OK, "2026-11-22T12:00:00Z", ""},
		"a database on a broken disk":     {JudgeDatabase(Database{IsThere: true, Err: unix.EROFS}), Failed, "read-only file system", "findmnt"},
		"one that is locked":              {JudgeDatabase(Database{IsThere: true, LockedBy: 77, Locker: "sqlite3"}), Failed, "sqlite3 (pid 77)", "kill 77"},
		"a relay that answers":            {JudgeRelays("far", []netip.Addr{addr("10.2.0.1")}, []netip.Addr{addr("10.2.0.1")}), OK, "10.2.0.1", ""},
		"one that does not":               {JudgeRelays("far", []netip.Addr{addr("10.2.0.1"), addr("10.2.0.2")}, []netip.Addr{addr("10.2.0.1")}), Warning, "10.2.0.2 answers no ping", "ip route get 10.2.0.2"},
		"files as they were":              {Artefacts(3, 7<<20, nil), OK, "3 files of images, 7 MiB", ""},
		"one file that is not":            {Artefacts(3, 7, []images.Fault{{Problem: "missing", Images: []string{"debian"}, Hint: "import"}}), Failed, "missing, which debian needs", "import; slipway image verify"},
		"files that are not":              {Artefacts(3, 7, []images.Fault{{Problem: "missing", Images: []string{"debian"}, Hint: "import"}, {}}), Failed, "missing, which debian needs; and 1 more", "slipway image verify"},
		"one that is kept":                {JudgeClock(now, Clock{IsKnown: true, IsSynced: true}, time.Time{}), OK, "2026-11-22T12:00:00Z", ""},
		"small buffers for a user":        {Buffers(map[string]int{rmemMax: 212992}, false), Warning, "212992", "4194304"},
		"buffers of a rack for a user":    {Buffers(map[string]int{rmemMax: enoughBuffer}, false), OK, "4194304", ""},
		"small buffers for root":          {Buffers(map[string]int{rmemMax: 212992}, true), OK, "privilege", ""},
		"buffers that cannot be read":     {Buffers(nil, false), Warning, "cannot be read", ""},
		"a small neighbour table":         {Neighbours(map[string]int{gcThresh3: 512}), Warning, "512", gcThresh3},
		"a large one":                     {Neighbours(map[string]int{gcThresh3: 1024}), OK, "1024", ""},
		"one of a container":              {Neighbours(nil), OK, "not readable", ""},
		"forwarding on":                   {Forwarding(map[string]int{ipForward: 1}), OK, "on:", ""},
		"forwarding off":                  {Forwarding(map[string]int{ipForward: 0}), OK, "off:", ""},
		"a certificate for iPXE":          {certificate(x509.RSA, x509.SHA256WithRSA, 1), OK, "SHA256-RSA", ""},
		"one with an elliptic key":        {certificate(x509.ECDSA, x509.ECDSAWithSHA256, 1), Failed, "ECDSA", "RSA"},
		"one signed by SHA-1":             {certificate(x509.RSA, x509.SHA1WithRSA, 1), Failed, "SHA1", "RSA"},
		"an elliptic key, signed by RSA":  {certificate(x509.ECDSA, x509.SHA256WithRSA, 1), Failed, "key of kind ECDSA", "RSA"},
		"one that is not valid yet":       {Certificate("ca.crt", &x509.Certificate{PublicKeyAlgorithm: x509.RSA, SignatureAlgorithm: x509.SHA256WithRSA, NotBefore: now.AddDate(0, 0, 1), NotAfter: now.AddDate(1, 0, 0)}, now), Failed, "not valid before", "clock"},
		"one that runs out soon":          {endsIn(9), Warning, "in 9 days", "slipway tls rotate"},
		"one that has run out":            {certificate(x509.RSA, x509.SHA256WithRSA, -1), Failed, "has run out", "slipway tls rotate"},
		"no other DHCP server":            {OtherServers("eth1", nil, nil), OK, "none heard", ""},
		"another one":                     {OtherServers("eth1", []netip.Addr{addr("10.0.0.2")}, nil), Warning, "10.0.0.2", "--mode full"},
		"a network that cannot be asked":  {OtherServers("eth1", nil, errors.New("not permitted")), Warning, "not permitted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if k := tc.got; k.Status != tc.status || !strings.Contains(k.Detail, tc.detail) || !strings.Contains(k.Hint, tc.hint) || tc.hint == "" && k.Hint != "" && k.Status != Warning {
				t.Errorf("got %+v, want %s, %q and %q", k, tc.status, tc.detail, tc.hint)
			}
		})
	}
}

func endsIn(days int) Check {
	c := &x509.Certificate{PublicKeyAlgorithm: x509.RSA, SignatureAlgorithm: x509.SHA256WithRSA, NotAfter: now.AddDate(0, 0, days)}
	return Certificate("ca.crt", c, now)
}

func certificate(key x509.PublicKeyAlgorithm, by x509.SignatureAlgorithm, years int) Check {
	return Certificate("ca.crt", &x509.Certificate{PublicKeyAlgorithm: key, SignatureAlgorithm: by, NotBefore: now.AddDate(-5, 0, 0), NotAfter: now.AddDate(years, 0, 0)}, now)
}

func TestAPortThatAnotherProgramHasNamesIt(t *testing.T) {
	dhcp := Port{Proto: "udp", Number: 67, For: "DHCP", Interfaces: []string{"eth1"}}
	boot := Port{Proto: "tcp", Number: 80, For: "the boot listener"}
	admin := Port{Proto: "tcp", Number: 8067, For: "the admin listener", Address: addr("127.0.0.1")}
	wide := Port{Proto: "tcp", Number: 8067, For: "the admin listener", Address: addr("0.0.0.0")}
	dnsmasq := Socket{Proto: "udp", Address: addr("0.0.0.0"), Number: 67, PID: 7, Program: "dnsmasq"}
	on := func(s Socket, iface string) Socket { s.Interface = iface; return s }
	for name, tc := range map[string]struct {
		port         Port
		open         []Socket
		server       int
		status, says string
	}{
		"nobody has it":                    {dhcp, nil, 0, OK, "free"},
		"it is taken on all interfaces":    {dhcp, []Socket{dnsmasq}, 0, Failed, "dnsmasq (pid 7)"},
		"it is taken on ours":              {dhcp, []Socket{on(dnsmasq, "eth1")}, 0, Failed, "on eth1"},
		"it is taken on another's":         {dhcp, []Socket{on(dnsmasq, "virbr0")}, 0, OK, "free"},
		"its user is hidden":               {dhcp, []Socket{{Proto: "udp", Number: 67}}, 0, Failed, "another program"},
		"it is a TCP port":                 {dhcp, []Socket{{Proto: "tcp", Number: 67, PID: 7}}, 0, OK, "free"},
		"a web server on one address":      {boot, []Socket{{Proto: "tcp", Number: 80, Address: addr("127.0.0.1"), PID: 8, Program: "nginx"}}, 0, Failed, "nginx (pid 8)"},
		"a web server on IPv6":             {boot, []Socket{{Proto: "tcp", Number: 80, Address: addr("::"), PID: 8, Program: "nginx"}}, 0, Failed, "nginx (pid 8)"},
		"a web server with TLS":            {Port{Proto: "tcp", Number: 443, For: "the boot listener over TLS"}, []Socket{{Proto: "tcp", Number: 443, PID: 8, Program: "nginx"}}, 0, Failed, "nginx (pid 8)"},
		"an admin port on another address": {admin, []Socket{{Proto: "tcp", Number: 8067, Address: addr("10.0.0.1"), PID: 8}}, 0, OK, "free"},
		"an admin port on its address":     {admin, []Socket{{Proto: "tcp", Number: 8067, Address: addr("127.0.0.1"), PID: 8}}, 0, Failed, "pid 8"},
		"an admin port, as IPv6 writes it": {admin, []Socket{{Proto: "tcp", Number: 8067, Address: addr("::ffff:127.0.0.1"), PID: 8}}, 0, Failed, "pid 8"},
		"an admin port on all addresses":   {admin, []Socket{{Proto: "tcp", Number: 8067, Address: addr("0.0.0.0"), PID: 8}}, 0, Failed, "pid 8"},
		"an admin port on any address":     {admin, []Socket{{Proto: "tcp", Number: 8067, PID: 8}}, 0, Failed, "pid 8"},
		"a port for all addresses":         {wide, []Socket{{Proto: "tcp", Number: 8067, Address: addr("10.0.0.1"), PID: 8}}, 0, Failed, "pid 8"},
		"a port for all interfaces":        {admin, []Socket{{Proto: "tcp", Number: 8067, Interface: "virbr0", PID: 8}}, 0, Failed, "on virbr0"},
		"it is ours":                       {dhcp, []Socket{{Proto: "udp", Number: 67, Interface: "eth1", PID: 9, Program: "slipway"}}, 9, OK, "slipway (pid 9)"},
		"it is another slipway's":          {dhcp, []Socket{{Proto: "udp", Number: 67, Interface: "eth1", PID: 10, Program: "slipway"}}, 9, Failed, "slipway (pid 10)"},
		"our server does not have it":      {dhcp, nil, 9, Warning, "does not listen"},
		"ours has it and another one too":  {dhcp, []Socket{{Proto: "udp", Number: 67, Interface: "eth1", PID: 9}, on(dnsmasq, "eth1")}, 9, Failed, "dnsmasq"},
	} {
		t.Run(name, func(t *testing.T) {
			k := JudgePort(tc.port, tc.open, tc.server)
			if k.Status != tc.status || !strings.Contains(k.Detail, tc.says) || k.Status == Failed && k.Hint == "" {
				t.Errorf("got %+v", k)
			}
			if canMove := strings.Contains(tc.port.For, "boot listener"); k.Status == Failed && strings.Contains(k.Hint, "--boot-port") != canMove {
				t.Errorf("hint %q", k.Hint)
			}
		})
	}
}

func TestAnInterfaceWithoutLinkLocalAddressIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		i    Interface
		want bool
	}{
		"it has one":      {Interface{Name: "eth1", IsThere: true, HasLinkLocal: true}, false},
		"it has none":     {Interface{Name: "eth1", IsThere: true}, true},
		"it is not there": {Interface{Name: "eth1"}, false}, // which is said elsewhere
	} {
		t.Run(name, func(t *testing.T) {
			all := Judge(&Facts{Now: now, Interfaces: []Interface{tc.i}})
			at := slices.IndexFunc(all, func(k Check) bool { return k.Name == "IPv6 on eth1" })
			if at >= 0 != tc.want || at >= 0 && (all[at].Status != Warning || !strings.Contains(all[at].Hint, "net.ipv6.conf.eth1.disable_ipv6=0")) {
				t.Errorf("%+v", all)
			}
		})
	}
}

func TestWarningsAreNotWrong(t *testing.T) {
	if IsWrong([]Check{{Status: OK}, {Status: Warning}}) || !IsWrong([]Check{{Status: OK}, {Status: Failed}, {Status: OK}}) {
		t.Error("errors, and only they, are wrong")
	}
}

func TestMissingLoadersThatMostRacksNeedAreWarnings(t *testing.T) {
	broken, good := t.TempDir(), t.TempDir()
	row, _ := pxe.LoaderByName("memtest.efi")
	for dir, text := range map[string]string{broken: "", good: "a program"} {
		if err := os.WriteFile(filepath.Join(dir, row.Files[0]), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaders, err := images.LoadLoaders([]string{broken, good})
	if err != nil {
		t.Fatal(err)
	}
	checks := Loaders(loaders)
	if checks[0].Name != "boot loaders" || checks[0].Status != OK {
		t.Errorf("%+v", checks[0])
	}
	if !slices.ContainsFunc(loaders.Problems(), func(p images.LoaderProblem) bool { return !p.IsMissing }) {
		t.Errorf("a file that cannot be used: %+v", loaders.Problems())
	}
	for _, p := range loaders.Problems() {
		row, _ := pxe.LoaderByName(p.Name)
		at := slices.IndexFunc(checks, func(k Check) bool { return k.Name == "loader "+p.Name })
		isSaid, isNamed := at >= 0, slices.Contains(strings.Fields(checks[0].Hint), p.Name)
		isNeeded := row.Package != "" && row.Firmware != ""
		if want := isNeeded || !p.IsMissing; isSaid != want || want && (checks[at].Status != Warning || checks[at].Hint == "") {
			t.Errorf("%+v: said %t, want %t", p, isSaid, want)
		}
		if want := p.IsMissing && !isNeeded && !strings.Contains(p.Name, "/"); isNamed != want {
			t.Errorf("%+v: named %t, want %t", p, isNamed, want)
		}
	}
}

func TestWays(t *testing.T) {
	own := []netip.Addr{addr("10.0.0.1")}
	if _, isNeeded := JudgeGateway("lab", own[0], own, map[string]int{ipForward: 1}); isNeeded {
		t.Error("a gateway that routes is complained of")
	}
	if _, isNeeded := JudgeGateway("lab", addr("10.0.0.2"), own, map[string]int{ipForward: 0}); isNeeded {
		t.Error("another's gateway is complained of")
	}
	if _, isNeeded := JudgeGateway("lab", own[0], own, nil); isNeeded {
		t.Error("a gateway of which nobody can tell is complained of")
	}
	if k, isNeeded := JudgeGateway("lab", own[0], own, map[string]int{ipForward: 0}); !isNeeded || k.Status != Warning {
		t.Errorf("a gateway that does not route: %+v", k)
	}
	if _, isNeeded := JudgeRoute("far", netip.MustParsePrefix("10.2.0.0/24"), "eth0"); isNeeded {
		t.Error("a network with a route is complained of")
	}
	if k, isNeeded := JudgeRoute("far", netip.MustParsePrefix("10.2.0.0/24"), ""); !isNeeded || k.Status != Failed || !strings.Contains(k.Hint, "ip route add 10.2.0.0/24") {
		t.Errorf("a relay without a route: %+v", k)
	}
}

func TestOnlyLimitsAreRaisedAndNoneIsLowered(t *testing.T) {
	small := map[string]int{rmemMax: 212992, gcThresh1: 128, gcThresh2: 512, gcThresh3: 1000, ipForward: 0}
	var names []string
	for _, c := range Changes(small) {
		if c.To <= c.From || c.From != small[c.Name] {
			t.Errorf("%+v", c)
		}
		names = append(names, c.Line())
	}
	// The upper bound goes first: the kernel's table is never to have a lower bound above it.
	if want := []string{rmemMax + " = 4194304", gcThresh3 + " = 4096", gcThresh2 + " = 2048", gcThresh1 + " = 1024"}; !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	if all := Changes(map[string]int{rmemMax: 8 << 20, gcThresh1: 1, gcThresh2: 2, gcThresh3: 1024}); len(all) != 0 {
		t.Errorf("what is enough is changed: %+v", all)
	}
	if all := Changes(map[string]int{rmemMax: 1, gcThresh1: 1, gcThresh2: 2, gcThresh3: 1024}); len(all) != 1 || all[0].Name != rmemMax {
		t.Errorf("a large table of neighbours keeps buffers small, or is changed: %+v", all)
	}
	if all := Changes(map[string]int{rmemMax: enoughBuffer, gcThresh1: 1024, gcThresh2: 2048, gcThresh3: 1000}); len(all) != 1 || all[0].Name != gcThresh3 {
		t.Errorf("what is as it should be is changed: %+v", all)
	}
	if all := Changes(nil); len(all) != 0 {
		t.Errorf("what cannot be read is changed: %+v", all)
	}
}

func TestTheTableOfSocketsIsRead(t *testing.T) {
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"  12: 0100007F:0045 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0 0\n" +
		"  13: 00000000000000000000000001000000:1F83 0000:0000 07 0:0 00:0 0 0 0 4712 2\n" +
		"nonsense\n 14: XX:0045 0 07 0 0 0 0 0 1\n"
	all := parseTable("udp", []byte(table))
	want := []found{
		{Socket{Proto: "udp", Address: addr("127.0.0.1"), Number: 69}, 4711},
		{Socket{Proto: "udp", Address: addr("::1"), Number: 8067}, 4712},
	}
	if !slices.Equal(all, want) {
		t.Errorf("got %+v", all)
	}
}

func TestOurOwnSocketsAndLockAreFound(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := Read([]string{"lo", "no-such"}, dir, []Port{{Proto: "tcp", Number: l.Addr().(*net.TCPAddr).Port, For: "the test"}})
	if f.ServerPID != os.Getpid() {
		t.Errorf("the lock is held by %d, not by us (%d)", f.ServerPID, os.Getpid())
	}
	checks := Judge(f)
	at := func(name string) Check {
		i := slices.IndexFunc(checks, func(k Check) bool { return strings.HasPrefix(k.Name, name) })
		if i < 0 {
			t.Fatalf("no %s in %+v", name, checks)
		}
		return checks[i]
	}
	if k := at("port tcp"); k.Status != OK || !strings.Contains(k.Detail, "by slipway") {
		t.Errorf("%+v", k)
	}
	if k := at("interface no-such"); k.Status != Failed || !IsWrong(checks) {
		t.Errorf("%+v", k)
	}
	if at("data directory").Status == "" || at("clock").Status != OK || at("database").Status != OK {
		t.Errorf("%+v", checks)
	}
}
