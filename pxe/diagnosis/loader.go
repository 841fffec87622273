package diagnosis

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// tftpRules are about boot files that do not come over TFTP.
func tftpRules() []Rule {
	return []Rule{
		{"tftp-unanswered", "the machine asks for its boot file over TFTP, and gets no answer", "a firewall on this server drops UDP 69 (ss -ulnp shows who has the port)", tftpUnanswered},
		{"tftp-answers-lost", "our TFTP answers do not reach it", "a firewall drops UDP from the ports above 1023 that TFTP answers from: let its connection tracking know TFTP, or open them", tftpAnswersLost},
		{"tftp-large-lost", "large TFTP packets do not reach it, small ones do", "make the MTU the same on every switch and interface of the way (a tunnel or a VLAN takes some of it)", tftpLargeLost},
		{"probe-only", "the machine asked for the size of its boot file, and then not for the file", "its firmware has no space for the file, or is broken there: try the smaller loader, or UEFI HTTP boot; update the firmware", probeOnly},
		{"transfer-stopped", "sending its boot file stopped half way", "packets get lost: check the cable, the duplex and the errors of its switch port; or power failed", transferStopped},
		{"small-blocks", "the first boot loader (shim) loads the second one over TFTP in blocks of 512 bytes", "this is slow, but works. If the time matters, use UEFI HTTP boot", smallBlocks},
		{"autoexec-waits", "iPXE asks for autoexec.ipxe and gets no answer, for which it waits half a minute", "the server that it asks (next-server) must answer TFTP, if only with an error", autoexecWaits},
		{"transfer-lossy", "packets of its boot file get lost, and this server sends them again", "check the cable, the duplex and the errors of its switch port", transferLossy},
	}
}

func tftpUnanswered(s *story) finding {
	deaf := s.repeats(func(p trace.Packet) bool { return len(s.replies(p.Src)) == 0 })
	if len(deaf) < 2 || len(deaf) < len(s.reads) {
		return finding{}
	}
	refused := filter(s.unreachable, func(p trace.Packet) bool { return p.ICMP.Dst.Port() == 69 })
	return finding{weight: strong, evidence: join(seen(deaf...), seen(refused...))}
}

func tftpAnswersLost(s *story) finding {
	lost := s.repeats(func(p trace.Packet) bool {
		return len(s.replies(p.Src)) > 0 && len(s.said(p.Src)) == 0 && !s.hasError(p)
	})
	if len(lost) == 0 || len(lost) == 1 && len(s.replies(lost[0].Src)) < 3 {
		return finding{}
	}
	if _, lives := s.livesAfter(s.replies(lost[0].Src)[0].At); !lives {
		return finding{} // its power may have failed
	}
	_, isSent := s.loaderSent()
	if isSent || len(s.ipxe()) > 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: join(seen(lost...), seen(s.replies(lost[0].Src)...))}
}

func tftpLargeLost(s *story) finding {
	for _, r := range s.reads {
		first := filter(s.replies(r.Src), func(p trace.Packet) bool {
			return p.TFTP.Op == trace.Data && p.TFTP.Block == 1 && p.Len >= large
		})
		acks := filter(s.said(r.Src), func(p trace.Packet) bool { return p.TFTP.Op == trace.Ack })
		beyond := slices.ContainsFunc(acks, func(p trace.Packet) bool { return p.TFTP.Block > 0 })
		if len(first) >= 3 && len(acks) > 0 && !beyond {
			life, lives := s.livesAfter(first[1].At)
			if !lives {
				continue // its power may have failed
			}
			size := 512
			if v, err := strconv.Atoi(r.TFTP.Options["blksize"]); err == nil {
				size = v
			}
			return finding{weight: strong, sentence: fmt.Sprintf("TFTP packets with blocks of %d bytes do not reach it, small ones do", size), evidence: join(seen(r), seen(acks[0], life), seen(first...))}
		}
	}
	return finding{}
}

func probeOnly(s *story) finding {
	if len(s.reads) == 0 {
		return finding{}
	}
	r := s.reads[len(s.reads)-1]
	_, isProbe := r.TFTP.Options["tsize"]
	aborted := filter(s.said(r.Src), func(p trace.Packet) bool { return p.TFTP.Op == trace.Error })
	if !isProbe || len(aborted) == 0 || !s.quiet(10*time.Second) || s.last.After(aborted[len(aborted)-1].At.Add(5*time.Second)) {
		return finding{}
	}
	return finding{weight: likely, evidence: join(seen(r), seen(aborted...))}
}

func transferStopped(s *story) finding {
	e, ok := s.event(inventory.EventLoaderSent, inventory.EventLoaderFailed, inventory.EventLoaderStarted)
	switch {
	case !ok || e.Kind == inventory.EventLoaderSent, e.Kind == inventory.EventLoaderStarted && s.Now.Sub(e.At) < 90*time.Second, s.hasAskedScript():
		return finding{}
	}
	w := likely
	if e.Kind == inventory.EventLoaderFailed {
		w = strong
	}
	return finding{weight: w, evidence: told(e)}
}

// lossyFrom is how many packets of one boot file have to be sent again to be worth a word.
const lossyFrom = 20

func transferLossy(s *story) finding {
	var bad []inventory.Event
	for _, e := range s.Events {
		if e.Kind == inventory.EventLoaderSent || e.Kind == inventory.EventLoaderFailed {
			if number(e.Data, "resent") >= lossyFrom {
				bad = append(bad, e)
			}
		}
	}
	if len(bad) == 0 {
		return finding{}
	}
	return finding{weight: slow, sentence: fmt.Sprintf("%d packets of its boot file had to be sent again", number(bad[len(bad)-1].Data, "resent")), evidence: told(bad...)}
}

// smallBlocks looks at what comes after a shim: its second stage, the slower the longer the way.
func smallBlocks(s *story) finding {
	i := slices.IndexFunc(s.reads, func(p trace.Packet) bool { return isShim(p.TFTP.Name) })
	if i < 0 {
		return finding{}
	}
	small := filter(s.reads[i+1:], func(p trace.Packet) bool {
		return !isShim(p.TFTP.Name) && isLoaderFile(p.TFTP.Name) && p.TFTP.BlockSize() <= 512
	})
	if len(small) == 0 {
		return finding{}
	}
	return finding{weight: slow, evidence: seen(s.reads[i], small[0])}
}

func autoexecWaits(s *story) finding {
	deaf := filter(s.reads, func(p trace.Packet) bool { return pxe.IsAutoexec(p.TFTP.Name) && len(s.replies(p.Src)) == 0 })
	if len(deaf) < 2 {
		return finding{}
	}
	return finding{weight: slow, evidence: seen(deaf...)}
}

// number reads a field of an event's data, 0 when it is not there.
func number(data any, name string) int {
	fields, _ := data.(map[string]any)
	switch v := fields[name].(type) {
	case float64:
		return int(v)
	case int64:
		return int(v)
	case int:
		return v
	}
	return 0
}

// loaderRules are about boot loaders that came and do not run, or run again and again.
func loaderRules() []Rule {
	return []Rule{
		{"loader-wrong-kind", "the boot loader that it fetches is for another kind of machine", "see who names that file: another DHCP server, or a quirk that is not for it", loaderWrongKind},
		{"secure-boot", "Secure Boot is on, and the boot loader that it fetches is not signed", "install Debian's packages shim-signed and grub-efi-amd64-signed, put iPXE's signed shim into a folder named with --loaders, or switch Secure Boot off", secureBoot},
		{"loader-refused", "its firmware fetched the boot loader and refuses to start it", "with Secure Boot on, give it a signed loader or switch Secure Boot off; its screen says which", loaderRefused},
		{"loader-silent", "the boot loader came whole, and nothing followed", "Secure Boot refuses the loader (see its screen), or it lacks a driver for this card. Try the other loader with a quirk (ipxe.efi for snponly.efi)", loaderSilent},
		{"loader-loop", "iPXE is given a boot loader again instead of a script", "the server that names the file must tell iPXE (option 77 or 175) from firmware", loaderLoop},
	}
}

func loaderWrongKind(s *story) finding {
	for _, p := range s.reads {
		l, ok := pxe.LoaderByName(p.TFTP.Name)
		c := s.client
		if !ok || c.Arch == "" || s.stage != pxe.StageFirmware {
			continue
		}
		if l.Arch != "" && l.Arch != c.Arch || l.Firmware != "" && c.Firmware != "" && l.Firmware != baseFirmware(c.Firmware) {
			return finding{
				weight: strong, evidence: seen(s.discovers[0], p),
				sentence: fmt.Sprintf("the machine fetches %s, which is not for %s %s", p.TFTP.Name, c.Arch, c.Firmware),
			}
		}
	}
	return finding{}
}

// baseFirmware takes UEFI HTTP boot as UEFI: the loaders are the same.
func baseFirmware(f inventory.Firmware) inventory.Firmware {
	if f == inventory.UEFIHTTP {
		return inventory.UEFI
	}
	return f
}

// secureBoot knows from the host what its firmware does with what nobody signed: its agent, its BMC or GRUB said that
// Secure Boot is on, or it has refused such a loader before.
func secureBoot(s *story) finding {
	if s.Host == nil || len(s.ipxe()) > 0 || s.hasAskedScript() {
		return finding{}
	}
	refused := s.Host.Facts[inventory.FactLoaderRefused]
	for _, p := range s.reads {
		l, ok := pxe.LoaderByName(p.TFTP.Name)
		if !ok || l.Firmware != inventory.UEFI { // rows of a signed chain name no firmware: they are chosen otherwise
			continue
		}
		switch {
		case s.Host.Facts[inventory.FactSecureBoot] == pxe.SecureBootOn:
			return finding{
				weight: certain, evidence: join(seen(p), said("Secure Boot is on, as %s said of itself", s.Host.Name)),
				sentence: fmt.Sprintf("Secure Boot is on, and the boot loader %s that it fetches is not signed", l.Name),
			}
		case refused != "":
			return finding{
				weight: strong, evidence: join(seen(p), said("it refused %s before", refused)),
				sentence: fmt.Sprintf("the machine refused %s before, as with Secure Boot, and fetches %s, which is not signed either", refused, l.Name),
			}
		}
	}
	return finding{}
}

// hasLoaded reports whether an attempt fetched a loader and came no further.
func hasLoaded(packets []trace.Packet) (trace.Packet, bool) {
	var fetched trace.Packet
	for _, p := range packets {
		switch {
		case p.DHCP != nil && p.DHCP.Client.Stage == pxe.StageIPXE, p.TCP != nil && isScriptPath(p.TCP.Path):
			return trace.Packet{}, false
		case p.TFTP != nil && p.TFTP.Op == trace.RRQ, p.TCP != nil && p.TCP.Method == "GET" && isLoaderPath(p.TCP.Path):
			fetched = p
		}
	}
	return fetched, fetched.Kind != trace.Unknown
}

func loaderRefused(s *story) finding {
	var e []Evidence
	n := 0
	for i, try := range s.tries {
		p, ok := hasLoaded(try)
		if !ok {
			continue
		}
		next, goesOn := firmwareAfter(try, p.At)
		if !goesOn && i+1 < len(s.tries) {
			next, goesOn = s.tries[i+1][0], s.tries[i+1][0].At.Sub(p.At) < 2*time.Minute
		}
		if goesOn {
			n++
			e = append(e, seen(p, next)...)
		}
	}
	e1, hasFailed := s.event(inventory.EventLoaderFailed)
	if n == 0 || len(s.ipxe()) > 0 || hasFailed && !e1.At.IsZero() || len(s.tftpErrors()) > 0 {
		return finding{}
	}
	f := finding{weight: likely, evidence: e}
	if n > 1 {
		f.weight, f.sentence = strong, fmt.Sprintf("its firmware fetched the boot loader %d times and refuses to start it", n)
	}
	return f
}

// firmwareAfter returns what firmware says after a time in an attempt, when it goes on to its next way to boot.
func firmwareAfter(packets []trace.Packet, t time.Time) (trace.Packet, bool) {
	i := slices.IndexFunc(packets, func(p trace.Packet) bool {
		return p.At.After(t) && (p.Six != nil && p.Six.IsBoot || p.DHCP != nil && !p.DHCP.IsReply && p.DHCP.Type == 1 && p.DHCP.Client.Stage == pxe.StageFirmware)
	})
	if i < 0 {
		return trace.Packet{}, false
	}
	return packets[i], true
}

func loaderSilent(s *story) finding {
	e, ok := s.loaderSent()
	p, hasRead := hasLoaded(s.boot)
	if !ok || s.Now.Sub(e.At) < 60*time.Second || !hasRead || s.hasAskedScript() {
		return finding{}
	}
	if _, goesOn := firmwareAfter(s.boot, p.At); goesOn {
		return finding{}
	}
	return finding{weight: likely, evidence: join(seen(p), told(e))}
}

func loaderLoop(s *story) finding {
	var bad []trace.Packet
	hasIPXE := false
	for _, p := range s.boot {
		m := p.DHCP
		switch {
		case m != nil && !m.IsReply && m.Client.Stage == pxe.StageIPXE:
			hasIPXE = true
		case hasIPXE && p.TFTP != nil && isLoaderFile(p.TFTP.Name):
			bad = append(bad, p)
		}
	}
	if len(bad) == 0 || s.hasAskedScript() {
		return finding{}
	}
	return finding{weight: strong, evidence: join(seen(s.ipxe()[0]), seen(bad...))}
}

// isLoaderPath reports whether an HTTP request is for a boot loader. Agents and systems fetch other things.
func isLoaderPath(p string) bool {
	p, _, _ = strings.Cut(p, "?")
	return isLoaderFile(path.Base(p))
}
