package pxe

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// How PXELINUX and U-Boot read a pxelinux.cfg. Both take the label that DEFAULT names. U-Boot shows MENU TITLE, passes over
// what it does not know with a complaint, takes one INITRD, and can neither wait nor ask again: LOCALBOOT lets it go on to
// its next way to boot. PXELINUX shows SAY, waits at its prompt for TIMEOUT tenths of a second, and reads a file again by
// CONFIG, so that it can ask as iPXE does.

// pxelinux is a pxelinux.cfg being written.
type pxelinux struct {
	strings.Builder
	in ScriptInput
}

func (p *pxelinux) line(words ...string) {
	p.WriteString(strings.Join(words, " "))
	p.WriteByte('\n')
}

// pxelinuxScript writes a decision as a pxelinux.cfg.
func pxelinuxScript(in ScriptInput) ([]byte, error) {
	p := pxelinux{in: in}
	head := p.forUBoot
	if p.isBIOS() {
		head = p.forPXELINUX
	}
	d := in.Decision
	switch d.Boot {
	case BootImage:
		return p.image(head, in.Plan.Image, in.Plan.Profile)
	case BootAgent:
		p.in.Plan.Config = nil
		return p.image(head, in.Plan.Work.Agent, in.agentProfile())
	case BootWait:
		head("waits", max(d.Again, AskAgain)+jitter(in.Client.MAC))
		p.again()
	case BootPark:
		head("is parked", max(d.Again, AskAgain))
		p.again()
	case BootDisk, BootIgnore, BootMenu:
		head("boots from its own disk", 0)
		p.leave()
	default:
		return nil, fmt.Errorf("no pxelinux.cfg for the decision %q", d.Boot)
	}
	return []byte(p.String()), nil
}

// isBIOS reports whether PXELINUX reads it: U-Boot is what there is on all other machines.
func (p *pxelinux) isBIOS() bool {
	f := p.in.Client.Firmware
	if f == "" && p.in.Host != nil {
		f = p.in.Host.Firmware
	}
	return f == inventory.BIOS
}

// forPXELINUX says what happens and begins the label that is taken after the wait; 0 takes it at once.
func (p *pxelinux) forPXELINUX(what string, wait time.Duration) {
	p.line("SAY Slipway:", consoleText(p.in.hostName()+" "+what+": "+p.in.Decision.Reason))
	if p.in.Decision.Hint != "" {
		p.line("SAY Slipway:", consoleText(p.in.Decision.Hint))
	}
	prompt := "PROMPT 0"
	if wait > 0 {
		p.line("SAY Slipway:", fmt.Sprintf("asking again in %d s", int(wait/time.Second)))
		prompt = "PROMPT 1"
	}
	p.line(prompt)
	p.line("NOESCAPE 1")
	if wait > 0 {
		p.line("TIMEOUT", fmt.Sprint(int(wait/(time.Second/10))))
	}
	p.line("DEFAULT slipway")
	p.line("LABEL slipway")
}

// forUBoot shows what happens as the menu's title for a second, and begins its label.
func (p *pxelinux) forUBoot(what string, _ time.Duration) {
	p.line("MENU TITLE Slipway:", consoleText(p.in.hostName()+" "+what+": "+p.in.Decision.Reason))
	p.line("PROMPT 1")
	p.line("TIMEOUT 10")
	p.line("DEFAULT slipway")
	p.line("LABEL slipway")
	p.line("  MENU LABEL", consoleText(what+" "+p.in.Decision.Hint))
}

// again has PXELINUX ask what to boot once more.
func (p *pxelinux) again() {
	if p.isBIOS() {
		p.line("  CONFIG", pxelinuxFile(p.in.Client.MAC))
		return
	}
	p.leave()
}

// leave goes on to the machine's own disk: PXELINUX gives the machine back to its BIOS, for its next way to boot.
func (p *pxelinux) leave() {
	if p.isBIOS() {
		p.line("  LOCALBOOT -1")
		return
	}
	p.line("  LOCALBOOT 1")
}

// image boots an image; several RAM disks come as one, because U-Boot takes one.
func (p *pxelinux) image(head func(what string, wait time.Duration), i *inventory.Image, profile *inventory.Profile) ([]byte, error) {
	kernel, initrds, args, err := bootWords(p.in, i, profile)
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		if strings.Contains(a, "${") || strings.ContainsAny(a, "\"'\\;") {
			return nil, inventory.Errorf(inventory.Invalid, "image %s: U-Boot cannot pass the argument %q", i.Name, inventory.Clean(a, 100)).
				WithHint("leave out quotes, backslashes, semicolons and ${")
		}
	}
	head("boots "+i.Name, 0)
	p.line("  LINUX", kernel)
	switch {
	case len(initrds) == 1:
		p.line("  INITRD", initrds[0])
	case len(initrds) > 1:
		p.line("  INITRD", initrdsFile(p.in.Session))
	}
	p.line("  APPEND", strings.Join(args, " "))
	return []byte(p.String()), nil
}

// pxelinuxFile is the file that a machine's PXELINUX asks for.
func pxelinuxFile(m inventory.MAC) string {
	return "pxelinux.cfg/01-" + strings.ReplaceAll(string(m), ":", "-")
}
