package pxe

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// ScriptInput is everything a script is made of.
type ScriptInput struct {
	Client   Client
	Host     *inventory.Host // nil for a machine that is not known
	Plan     Plan            // its Profile and Image, for BootImage
	Decision Decision
	Session  inventory.SessionID
	Base     string // our boot server as that machine reaches it, such as http://10.0.0.1
	// Others are the addresses of other instances on the network of the machine. It loads the files of its image there, too, and asks there
	// when ours is gone.
	Others   []netip.Addr
	AgentKey string // for BootAgent: what proves that a report is of this boot's agent
}

func (in ScriptInput) hostName() string {
	if in.Host != nil && inventory.CheckName("host", in.Host.Name) == nil {
		return in.Host.Name
	}
	return in.Client.MAC.Hyphens()
}

// of is who a script is for.
func (in ScriptInput) of() string {
	if in.Host != nil && in.Host.ID != "" {
		return string(in.Host.ID)
	}
	return string(in.Client.MAC)
}

// bases are the URLs of Sources. There is only our own while no other instance is on the network, and over TLS.
func (in ScriptInput) bases() []string { return Bases(in.of(), in.Base, in.Others) }

// Bases returns the boot servers at which a host loads large files, as Sources has them.
func Bases(of, base string, others []netip.Addr) []string {
	if !strings.HasPrefix(base, "http://") {
		return []string{base}
	}
	return basesOf(of, base, others)
}

// OwnFirst returns the boot servers at which a host goes on with what it began at base. That one comes first, because it answered a moment
// ago. The others of Sources follow, over TLS, too: each instance has a certificate of its addresses, and one authority signs them all.
func OwnFirst(of, base string, others []netip.Addr) []string {
	all := []string{base}
	for _, b := range basesOf(of, base, others) {
		if b != base {
			all = append(all, b)
		}
	}
	return all
}

// basesOf returns base with each address of Sources in place of its own. All instances use the same port.
func basesOf(of, base string, others []netip.Addr) (bases []string) {
	u, err := url.Parse(base)
	if err != nil || len(others) == 0 {
		return []string{base}
	}
	ours, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return []string{base}
	}
	for _, a := range Sources(of, ours, others) {
		if a == ours.Unmap().WithZone("") {
			bases = append(bases, base)
			continue
		}
		host := a.String()
		if a.Is6() {
			host = "[" + host + "]"
		}
		if p := u.Port(); p != "" {
			host += ":" + p
		}
		bases = append(bases, u.Scheme+"://"+host)
	}
	return bases
}

// Elsewhere returns where else a host fetches a file than at the first of Bases.
func Elsewhere(bases []string, s inventory.SessionID, f inventory.ImageArtefact) (urls []string) {
	for _, b := range bases[1:] {
		urls = append(urls, ArtefactURL(b, s, f))
	}
	return urls
}

// script is a script being written. Only verbs that iPXE has had since 2019 are used: Debian 12's build lacks poweroff,
// param, console, ping and whatever came later.
type script struct {
	strings.Builder
	in ScriptInput
}

// line writes one line. Its arguments are words we chose, or have been through quote, URL or checkWords.
func (s *script) line(words ...string) {
	s.WriteString(strings.Join(words, " "))
	s.WriteByte('\n')
}

// say shows text on the machine's console.
func (s *script) say(text string) {
	if text = quote(text); text != "" {
		s.line("echo Slipway:", text)
	}
}

func (s *script) sleep(d time.Duration) {
	s.line("sleep", fmt.Sprint(max(1, int(d/time.Second))), "||") // a key ends the wait, not the script
}

// report tells the server how far the boot is; that it cannot be told stops nothing. The answer must be a 200 with a
// Content-Length and a body: iPXE from 2019 waits for the end of a 204 until the timeout (proven).
func (s *script) report(step ReportStep, detail string) {
	q := url.Values{"step": {string(step)}}
	if detail != "" {
		q.Set("detail", detail)
	}
	s.line("imgfetch --name report --timeout 5000", URL(s.in.Base, s.in.Session, "report")+"?"+q.Encode(), "&& imgfree report ||")
}

// How the loop of chain asks: at once, after 2, 4, 8, 16 and 32 s, and then no more. A machine that waits goes on, every 32 s.
const (
	firstSleep = "2"
	lastSleep  = "32"
)

// chain replaces the running script by the one that an instance answers with. All are asked in turn, six times within about a minute; then
// iPXE ends with an error, so that UEFI firmware goes on to its next boot entry instead of showing its menu. A machine that waits goes on
// asking until an instance answers. chain ends a script. --replace keeps scripts that fetch the next one from
// nesting until memory is full.
func (s *script) chain(urls []string, waits bool) {
	s.line("set pause:int32", firstSleep)
	s.line(":ask")
	for _, u := range urls {
		s.line("chain --replace --autofree --timeout 15000", u, "||")
	}
	if !waits {
		s.line("iseq ${pause} " + lastSleep + " && goto silent ||")
	}
	s.line("echo Slipway: no answer; asking again in ${pause} s")
	s.line("sleep ${pause} ||")
	if waits {
		s.line("iseq ${pause} " + lastSleep + " || inc pause ${pause}")
		s.line("goto ask")
		return
	}
	s.line("inc pause ${pause}")
	s.line("goto ask")
	s.line(":silent")
	s.line("echo Slipway: the boot server does not answer; leaving the network boot")
	s.line("exit 1")
}

// asks are the URLs at which a machine asks again what to boot.
func (s *script) asks(path, query string) (urls []string) {
	for _, base := range OwnFirst(s.in.of(), s.in.Base, s.in.Others) {
		urls = append(urls, URL(base, s.in.Session, path)+query)
	}
	return urls
}

// askQuery is what a machine reports of itself. A MAC, a UUID and a number print as text already; other text goes
// through uristring, which escapes what would end the URL. iPXE decodes and encodes it once more before it sends it,
// and then & stands bare in a serial number (proven). So what matters comes first: of a key that stands twice the
// first one counts, and no text from SMBIOS can take the place of a MAC.
var askQuery = func() string {
	q := []string{"mac=${mac:hexhyp}"}
	for i := range maxNICs {
		q = append(q, fmt.Sprintf("mac%d=${net%d/mac:hexhyp}", i, i))
	}
	q = append(q, "uuid=${uuid}", "memsize=${memsize}", "secureboot=${efi/SecureBoot:hexraw}") // the last one iPXE 2.0 knows
	for _, name := range []string{"platform", "buildarch", "version", "serial", "asset", "manufacturer", "product", "board-serial", "cpumodel"} {
		q = append(q, name+"=${"+name+":uristring}")
	}
	return strings.Join(q, "&")
}()

// AskScript makes iPXE report what the machine is and run the script it is answered with. It is what DHCP names to
// iPXE, and what iPXE 2.0 finds as autoexec.ipxe; the latter may not have an address yet. `dhcp` would wait up to 16 s
// for IPv6 routers, `ifconf -c dhcp` does not. others are the addresses of other instances on the network of the machine.
func AskScript(base string, session inventory.SessionID, others ...netip.Addr) []byte {
	s := script{in: ScriptInput{Base: base, Session: session, Others: others}}
	s.line("#!ipxe")
	if strings.Contains(base, "://[") { // asking for an IPv4 address would take the IPv6 one away
		s.line("isset ${ip6} || ifconf ||")
	} else {
		s.line("isset ${ip} || ifconf -c dhcp ||")
	}
	s.say("asking " + cleanURL(base) + " what to boot")
	s.chain(s.asks("script", "?"+askQuery), false)
	return []byte(s.String())
}

// Script writes a decision as a script for the boot loader that asks: iPXE, GRUB or U-Boot. Every script says on the console what happens and why. Text from
// machines and people is quoted; kernel arguments that cannot be passed as they are are an *inventory.Error.
func Script(in ScriptInput) ([]byte, error) {
	switch in.Client.Stage {
	case StageGRUB:
		if in.Decision.Boot == BootMenu && in.Client.Choice != ChoiceMenu {
			return menuCall(in), nil
		}
		return grubScript(in)
	case StagePXELinux:
		return pxelinuxScript(in)
	}
	s := script{in: in}
	s.line("#!ipxe")
	s.line("echo")
	switch in.Decision.Boot {
	case BootImage:
		if err := s.image(s.in.Plan.Image, s.in.Plan.Profile); err != nil {
			return nil, err
		}
	case BootAgent:
		s.in.Plan.Config = nil // the agent fetches what it needs
		if err := s.image(s.in.Plan.Work.Agent, s.in.agentProfile()); err != nil {
			return nil, err
		}
	case BootMenu:
		s.menu()
	case BootWait:
		s.wait()
	case BootPark:
		s.park()
	case BootDisk, BootIgnore:
		s.disk()
	default:
		return nil, fmt.Errorf("no script for the decision %q", in.Decision.Boot)
	}
	return []byte(s.String()), nil
}

func (s *script) why() {
	s.say(s.in.Decision.Reason)
	s.say(s.in.Decision.Hint)
}

// image boots the image. Under UEFI the kernel itself fetches each initrd from iPXE by the name in an initrd= argument;
// Linux 5.8 and iPXE 2.0 agree without, and ignore it. A BIOS kernel is handed everything that is loaded, so nothing
// else may be: hence imgfree.
func (s *script) image(i *inventory.Image, p *inventory.Profile) error {
	if i == nil || p == nil {
		return fmt.Errorf("image script for %s without profile and image", s.in.Client.MAC)
	}
	if err := i.Validate(); err != nil {
		return err
	}
	args, err := variables{in: s.in, image: i}.arguments(p)
	if err != nil {
		return err
	}
	var kernel []string // each of these is one file, at one address after the other
	var initrds [][]string
	var names []string
	for _, f := range i.Files {
		var get []string
		for _, base := range s.in.bases() {
			get = append(get, "--name "+f.Name+" "+ArtefactURL(base, s.in.Session, f))
		}
		switch f.Role {
		case inventory.RoleKernel:
			kernel = get
		case inventory.RoleInitrd:
			initrds = append(initrds, get)
			names = append(names, "initrd="+f.Name)
		}
	}
	if c := s.in.Plan.Config; c != nil && c.HasInitrd {
		initrds = append(initrds, []string{"--name " + ConfigArchive + " " + URL(cmp.Or(c.Base, s.in.Base), s.in.Session, ConfigArchive)})
		names = append(names, "initrd="+ConfigArchive)
	}
	if s.in.Client.Firmware != inventory.BIOS {
		args = append(names, args...)
	}
	s.say(s.in.hostName() + " boots " + i.Name)
	s.why()
	s.line("imgfree")
	for n := range kernel {
		kernel[n] += " " + strings.Join(args, " ")
	}
	s.load("kernel", kernel)
	for _, get := range initrds {
		s.load("initrd", get)
	}
	if usesShim(s.in, i) { // iPXE 2.0: the distribution's shim checks the kernel
		if w := shimFor(s.in, i); w != "" {
			s.line("shim --timeout 15000", URL(s.in.Base, s.in.Session, w), "|| goto failed")
		}
	}
	s.line("boot || goto failed")
	s.line(":failed")
	s.say("could not load or start " + i.Name + "; the line above says why")
	s.line("imgfree")
	s.report(ReportProgress, "iPXE could not load or start "+i.Name)
	s.sleep(AskAgain)
	s.chain(s.asks("ask", ""), false)
	return nil
}

// load loads one file, from the next place if the one before fails.
func (s *script) load(command string, places []string) {
	s.line(command, strings.Join(places, " || "+command+" "), "|| goto failed")
}

// wait shows why nothing boots, and asks again after a while.
func (s *script) wait() {
	s.say(s.in.hostName() + " waits")
	s.why()
	d := s.in.Decision.Again
	if d <= 0 {
		d = AskAgain
	}
	d += jitter(s.in.Client.MAC)
	s.line(fmt.Sprintf("echo Slipway: asking again in %d s", int(d/time.Second)))
	s.sleep(d)
	s.chain(s.asks("ask", ""), true)
}

// jitter spreads machines that were switched on together over four seconds.
func jitter(m inventory.MAC) time.Duration {
	n := 0
	for _, b := range []byte(m) {
		n = n*31 + int(b)
		n &= 0xffff
	}
	return time.Duration(n%4) * time.Second
}

// park shows why nothing boots, waits long, and restarts the machine: what put it here may be gone by then.
func (s *script) park() {
	s.say(s.in.hostName() + " is parked")
	s.why()
	d := s.in.Decision.Again
	if d <= 0 {
		d = ParkFor
	}
	s.line(fmt.Sprintf("echo Slipway: restarting in %d s", int(d/time.Second)))
	s.sleep(d)
	s.line("reboot")
}

// disk hands over to the machine's own disk. It leaves with an error, because UEFI firmware takes success for a boot
// that is over, and shows its menu.
func (s *script) disk() {
	s.say(s.in.hostName() + " boots from its own disk")
	s.why()
	s.report(ReportDisk, "")
	if s.in.Decision.Disk == inventory.DiskSanboot {
		s.line("sanboot --no-describe --drive 0x80 ||")
	}
	s.line("exit 1")
}
