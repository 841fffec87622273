package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// systemRules are about what was booted: kernel, initrd, agent, installer.
func systemRules() []Rule {
	return []Rule{
		{"no-kernel", "the machine has its boot script, but does not load the files in it", "it ran out of memory, or HTTP breaks off: its screen says which", noKernel},
		{"no-initrd", "the machine loaded the kernel, but not all other files", "it ran out of memory (its firmware keeps some of it), or HTTP breaks off: its screen says which", noInitrd},
		{"file-broken-off", "sending a file of the image stopped half way", "packets get lost, power failed, or the file here is damaged: slipway image verify", fileBrokenOff},
		{"little-memory", "the machine has less memory than the image needs", "add memory, or use a smaller image", littleMemory},
		{"kernel-silent", "the machine fetched kernel and initrd, and has sent nothing since", "see its console: the kernel may have panicked, or write to another one (add console= to the profile's arguments). Secure Boot may refuse the kernel, or the initrd may lack the driver of its network card", kernelSilent},
		{"agent-silent", "its system asks for an address, and our agent does not report", "HTTP to this server is blocked from there, its clock is wrong for HTTPS, or the network card that it uses is in another VLAN", agentSilent},
		{"config-not-fetched", "its system asks for an address, and does not fetch its configuration", "see its console: an old system on disk may run, its installer may not read the URL, or HTTP to this server is blocked", configNotFetched},
		{"config-refused", "the machine asked for its configuration and did not get it", "the reason is in its timeline: slipway host events HOST. The machine asks again by itself", configRefused},
		{"agent-stopped", "our agent began, and does not report any more", "see its console; power may have failed, or its network", agentStopped},
		{"reported-failed", "the booted system reports a failure", "its log is in the timeline: slipway host events HOST", reportedFailed},
	}
}

// given returns when the machine was told to boot an image, and whether it was.
func (s *story) given() (inventory.Event, bool) {
	e, ok := s.event(inventory.EventBootDecided)
	is := strings.HasPrefix(e.Detail, string(pxe.BootImage)+":") || strings.HasPrefix(e.Detail, string(pxe.BootAgent)+":")
	return e, ok && is
}

// arrived reports whether anything was heard of what was booted.
func (s *story) arrived() bool {
	_, ok := s.event(inventory.EventConfigSent, inventory.EventAgentStarted, inventory.EventAgentReported, inventory.EventReported)
	return ok
}

// files is how many files the image has that a boot fetches.
func (s *story) files() int {
	if s.Image == nil {
		return 0
	}
	n := 0
	for _, f := range s.Image.Files {
		if f.Role == inventory.RoleKernel || f.Role == inventory.RoleInitrd {
			n++
		}
	}
	return n
}

// fetched returns the events of files that came whole, each name once.
func (s *story) fetched() []inventory.Event {
	var out []inventory.Event
	names := map[any]bool{}
	for _, e := range s.eventsOf(inventory.EventArtefactSent) {
		fields, _ := e.Data.(map[string]any)
		name := fields["name"]
		if name == nil {
			name = e.Detail
		}
		if !names[name] {
			names[name] = true
			out = append(out, e)
		}
	}
	return out
}

func noKernel(s *story) finding {
	e, ok := s.given()
	_, hasFile := s.event(inventory.EventArtefactSent, inventory.EventArtefactFailed)
	if !ok || hasFile || s.arrived() || s.Now.Sub(e.At) < 60*time.Second || s.lastStatus() >= 400 {
		return finding{}
	}
	return finding{weight: likely, evidence: told(e)}
}

func noInitrd(s *story) finding {
	e, ok := s.given()
	f := s.fetched()
	_, isBroken := s.event(inventory.EventArtefactFailed)
	if !ok || isBroken || len(f) == 0 || len(f) >= s.files() || s.arrived() || s.Now.Sub(f[len(f)-1].At) < 60*time.Second {
		return finding{}
	}
	return finding{weight: likely, sentence: fmt.Sprintf("the machine fetched %d of %d files, and not the rest", len(f), s.files()), evidence: join(told(e), told(f...))}
}

func fileBrokenOff(s *story) finding {
	e, ok := s.event(inventory.EventArtefactSent, inventory.EventArtefactFailed)
	if !ok || e.Kind != inventory.EventArtefactFailed || s.arrived() {
		return finding{}
	}
	return finding{weight: strong, evidence: told(e)}
}

func littleMemory(s *story) finding {
	if s.Host == nil || s.Image == nil || s.Host.MemoryMiB == 0 || s.Host.MemoryMiB+s.Host.MemoryMiB/16 >= s.Image.MemoryMiB || s.arrived() {
		return finding{}
	}
	return finding{
		weight: strong, sentence: fmt.Sprintf("the machine has %d MiB of memory, and the image %s needs %d MiB", s.Host.MemoryMiB, s.Image.Name, s.Image.MemoryMiB),
		evidence: said("%d MiB of memory", s.Host.MemoryMiB),
	}
}

// systemWithin is when a system that was booted has been heard: a large initrd and slow controllers take minutes.
const systemWithin = 3 * time.Minute

// loaded returns the last file of a boot that has all its files, and whether it has stood still since.
func (s *story) loaded() (inventory.Event, bool) {
	f := s.fetched()
	if _, ok := s.given(); !ok || len(f) == 0 || len(f) < s.files() || s.arrived() {
		return inventory.Event{}, false
	}
	last := f[len(f)-1]
	return last, s.Now.Sub(last.At) >= systemWithin
}

// systemsAfter returns the packets of an operating system after a time.
func (s *story) systemsAfter(t time.Time) []trace.Packet {
	return filter(s.Packets, func(p trace.Packet) bool {
		m := p.DHCP
		return m != nil && !m.IsReply && m.Client.Stage == pxe.StageOS && p.At.After(t)
	})
}

func kernelSilent(s *story) finding {
	e, ok := s.loaded()
	if !ok || len(s.systemsAfter(e.At)) > 0 {
		return finding{}
	}
	return finding{weight: likely, evidence: told(s.fetched()...)}
}

func (s *story) isAgent() bool { return s.Session.Boot == string(pxe.BootAgent) }

func agentSilent(s *story) finding {
	e, ok := s.loaded()
	x := s.systemsAfter(e.At)
	if !ok || len(x) == 0 || !s.isAgent() {
		return finding{}
	}
	return finding{weight: likely, evidence: join(told(e), seen(x...))}
}

func configNotFetched(s *story) finding {
	e, ok := s.loaded()
	x := s.systemsAfter(e.At)
	if !ok || len(x) == 0 || s.isAgent() {
		return finding{}
	}
	return finding{weight: likely, evidence: join(told(e), seen(x...))}
}

func configRefused(s *story) finding {
	e, ok := s.event(inventory.EventConfigSent, inventory.EventConfigRefused)
	if !ok || e.Kind != inventory.EventConfigRefused {
		return finding{}
	}
	return finding{weight: certain, sentence: "the machine asked for its configuration and did not get it: " + e.Detail, evidence: told(e)}
}

func agentStopped(s *story) finding {
	e, ok := s.event(inventory.EventAgentStarted, inventory.EventAgentReported, inventory.EventAgentLog)
	if !ok || s.Now.Sub(e.At) < 10*time.Minute || !s.Session.EndedAt.IsZero() || !s.isAgent() {
		return finding{}
	}
	return finding{weight: likely, evidence: told(e)}
}

func reportedFailed(s *story) finding {
	if s.Session.Outcome != inventory.OutcomeFailed {
		return finding{}
	}
	e, _ := s.event(inventory.EventReported)
	f := finding{weight: certain, evidence: told(e)}
	if e.Detail != "" {
		f.sentence = "the booted system reports a failure: " + e.Detail
	}
	return f
}

// loopRules are about machines that boot again and again.
func loopRules() []Rule {
	return []Rule{
		{"boot-loop", "the machine boots over the network again and again", "see the result of each boot (slipway host events HOST --all), and its console", bootLoop},
		{"disk-exit-fails", "the machine is sent to its own disk, and comes back to the network each time", "the disk has no bootable system, or the firmware does not continue to the disk. Choose another way to the disk (slipway host set HOST --disk-boot exit), or put the disk first in the boot order", diskExitFails},
	}
}

// loopWithin is the time in which attempts are counted, loopFrom how many make a loop.
const (
	loopWithin = 30 * time.Minute
	loopFrom   = 4
)

func bootLoop(s *story) finding {
	x := s.recent(loopWithin)
	if len(x) < loopFrom || s.Decision.Boot == pxe.BootDisk {
		return finding{}
	}
	return finding{weight: possible, sentence: fmt.Sprintf("the machine booted over the network %d times within %d minutes", len(x), loopWithin/time.Minute), evidence: seen(x...)}
}

func diskExitFails(s *story) finding {
	x := slices.DeleteFunc(s.recent(loopWithin), s.wasGivenFiles)
	x = slices.DeleteFunc(x, func(p trace.Packet) bool { // its disk ran after that, and anyone who restarted it meant to
		return len(s.systemsAfter(p.At)) > 0
	})
	if len(x) < 3 || s.Decision.Boot != pxe.BootDisk {
		return finding{}
	}
	return finding{weight: strong, sentence: fmt.Sprintf("Slipway sent it to its own disk %d times within %d minutes, and it came back to the network", len(x), loopWithin/time.Minute), evidence: seen(x...)}
}
