package diagnosis

import (
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

func fetchTales() []tale {
	return []tale{
		{rule: "no-boot-file", story: func(w *wire, _ *Case) { w.address(0, ipxe) }, but: func(w *wire, _ *Case) { w.get(1, "/boot/ask", "200 OK") }},
		{rule: "other-next-server", story: func(w *wire, c *Case) {
			normal(w, c)
			w.tcpTo(5, other, true, syn, "")
		}, but: normal, isInstead: true},
		{
			rule: "file-garbled", story: func(w *wire, _ *Case) {
				w.address(0, bios, file("undionly.kpxe"))
				w.read(1, 2000, "undionly.kpxe\xff")
				w.tftp(1.1, false, 2000, 5, 1, "not here\x00")
			}, but: func(w *wire, _ *Case) {
				w.address(0, bios, file("undionly.kpxe"))
				w.read(1, 2000, "undionly.kpxe")
			}, isInstead: true, rank: 2,
		},
		{rule: "no-fetch", story: func(w *wire, _ *Case) { w.address(0, uefi, file(loader)) }, but: func(w *wire, _ *Case) { w.read(1, 2000, loader) }},
		{rule: "name-in-url", story: func(w *wire, _ *Case) {
			w.address(0, urlUEFI, raw(67, []byte("http://boot.example/x.efi")...), class("HTTPClient"))
		}, but: func(w *wire, _ *Case) {
			w.ack(1, us, raw(67, []byte("http://boot.example/x.efi")...), class("HTTPClient"), raw(6, 10, 0, 0, 1))
		}},
		{rule: "shim-garbled", story: func(w *wire, _ *Case) {
			w.address(0, uefi, file("shimx64.efi"))
			w.read(1, 2000, "shimx64.efi")
			w.read(2, 2001, "Onboard NIC (IPV4)")
			w.tftp(2.1, false, 2001, 5, 1, "not here\x00")
		}, but: func(w *wire, _ *Case) { w.read(3, 2002, "grubx64.efi") }},
		{rule: "file-unknown", story: func(w *wire, _ *Case) {
			w.address(0, bios, file("pxelinux.0"))
			w.read(1, 2000, "pxelinux.0")
			w.tftp(1.1, false, 2000, 5, 1, "not here\x00")
		}, but: func(w *wire, _ *Case) {
			w.address(0, ipxe, file("x"))
			w.read(1, 2000, pxe.AutoexecName)
			w.tftp(1.1, false, 2000, 5, 1, "not here\x00")
		}, isInstead: true},
	}
}

func tftpTales() []tale {
	begin := func(w *wire, _ *Case) { w.address(0, uefi, file(loader)) }
	return []tale{
		{rule: "tftp-unanswered", story: both(begin, func(w *wire, _ *Case) {
			w.read(1, 2000, loader)
			w.read(5, 2000, loader)
		}), but: func(w *wire, _ *Case) { w.tftp(5.1, false, 2000, 3, 1, "data") }},
		{rule: "tftp-answers-lost", story: both(begin, func(w *wire, _ *Case) {
			w.read(1, 2000, loader, "blksize", "1468")
			for i := range 4 {
				w.tftp(1.2+float64(i), false, 2000, 6, 0, "blksize\x001468\x00")
			}
			w.read(6, 2001, loader, "blksize", "1468")
			w.tftp(6.1, false, 2001, 6, 0, "blksize\x001468\x00")
		}), but: func(w *wire, _ *Case) { w.tftp(1.3, true, 2000, 4, 0, ""); w.tftp(6.2, true, 2001, 4, 0, "") }},
		{rule: "tftp-large-lost", story: both(begin, func(w *wire, _ *Case) {
			w.read(1, 2000, loader, "blksize", "1468")
			w.tftp(1.1, false, 2000, 6, 0, "blksize\x001468\x00")
			w.tftp(1.2, true, 2000, 4, 0, "")
			for i := range 4 {
				w.tftp(1.3+float64(i), false, 2000, 3, 1, strings.Repeat("x", 1468))
			}
			w.tftp(4, true, 2000, 4, 0, "") // it asks for the first block again
		}), but: func(w *wire, _ *Case) { w.tftp(5, true, 2000, 4, 1, "") }},
		{rule: "probe-only", story: both(begin, func(w *wire, _ *Case) {
			w.read(1, 2000, loader, "tsize", "0")
			w.tftp(1.1, false, 2000, 6, 0, "tsize\x00100000\x00")
			w.tftp(1.2, true, 2000, 5, 8, "User aborted\x00")
		}), but: func(w *wire, _ *Case) { w.read(1.3, 2001, loader) }},
		{rule: "transfer-stopped", story: both(begin, func(w *wire, c *Case) {
			w.read(1, 2000, loader)
			c.event(1, inventory.EventLoaderStarted, loader+" over tftp")
			c.event(20, inventory.EventLoaderFailed, loader+" over tftp stopped at 5000 of 100000 bytes")
		}), but: func(_ *wire, c *Case) { c.event(25, inventory.EventLoaderSent, loader+" over tftp") }, rank: 2},
		{rule: "small-blocks", story: both(begin, func(w *wire, _ *Case) {
			w.read(1, 2000, "shimx64.efi", "blksize", "1468")
			w.read(2, 2001, "grubx64.efi", "tsize", "0")
		}), but: both(begin, func(w *wire, _ *Case) {
			w.read(1, 2000, "shimx64.efi", "blksize", "1468")
			w.read(2, 2001, "grubx64.efi", "blksize", "1468")
		}), isInstead: true, rank: 3},
		{rule: "autoexec-waits", story: func(w *wire, c *Case) {
			normal(w, c)
			w.read(3, 2005, pxe.AutoexecName)
			w.read(3.5, 2005, pxe.AutoexecName)
		}, but: func(w *wire, _ *Case) { w.tftp(3.6, false, 2005, 5, 1, "not here\x00") }},
		{rule: "transfer-lossy", story: func(w *wire, c *Case) {
			normal(w, c)
			c.event(2, inventory.EventLoaderSent, loader+" over tftp", map[string]any{"resent": float64(120)})
		}, but: normal, isInstead: true},
	}
}

func loaderTales() []tale {
	loaded := func(w *wire, c *Case) {
		w.address(0, uefi, file(loader))
		w.read(1, 2000, loader)
		w.tftp(1.1, false, 2000, 3, 1, "data")
		w.tftp(1.2, true, 2000, 4, 1, "")
		c.event(1.5, inventory.EventLoaderSent, loader+" over tftp")
	}
	return []tale{
		{rule: "loader-wrong-kind", story: func(w *wire, _ *Case) {
			w.address(0, uefi, file("undionly.kpxe"))
			w.read(1, 2000, "undionly.kpxe")
			w.tftp(1.1, false, 2000, 3, 1, "data")
		}, but: func(w *wire, _ *Case) {
			w.address(0, bios, file("undionly.kpxe"))
			w.read(1, 2000, "undionly.kpxe")
		}, isInstead: true},
		{
			rule: "secure-boot", story: both(loaded, func(_ *wire, c *Case) {
				c.Host.Facts = map[string]string{inventory.FactSecureBoot: pxe.SecureBootOn}
			}), but: func(_ *wire, c *Case) { c.Host.Facts[inventory.FactSecureBoot] = pxe.SecureBootOff },
		},
		{
			rule: "secure-boot", story: both(loaded, func(_ *wire, c *Case) {
				c.Host.Facts = map[string]string{inventory.FactLoaderRefused: "ipxe.efi"}
			}), but: func(w *wire, _ *Case) { w.discover(2, ipxe) },
		},
		{rule: "loader-refused", story: both(loaded, func(w *wire, _ *Case) { w.solicit(3); w.discover(20, uefi) }), but: func(w *wire, _ *Case) { w.discover(2, ipxe) }},
		{rule: "loader-silent", story: loaded, but: func(w *wire, _ *Case) { w.address(4, ipxe, file("http://10.0.0.1/boot/ask")) }},
		{rule: "loader-loop", story: both(loaded, func(w *wire, _ *Case) {
			w.address(4, ipxe, file(loader))
			w.read(5, 2002, loader)
		}), but: func(w *wire, _ *Case) { w.get(4.5, "/boot/ask", "200 OK") }},
	}
}

func scriptTales() []tale {
	toIPXE := func(w *wire, c *Case) {
		w.address(0, uefi, file(loader))
		w.read(1, 2000, loader)
		c.event(1.5, inventory.EventLoaderSent, loader+" over tftp")
	}
	answered := func(w *wire, _ *Case) { w.address(4, ipxe, file("http://10.0.0.1/boot/ask")) }
	return []tale{
		{rule: "ipxe-no-address", story: both(toIPXE, func(w *wire, _ *Case) {
			for i := range 4 {
				w.discover(4+float64(i), ipxe)
				w.offer(4.1+float64(i), us, file("http://10.0.0.1/boot/ask"))
			}
		}), but: func(w *wire, _ *Case) { w.request(9, ipxe, to(us)) }},
		{rule: "proxy-wait", story: func(w *wire, _ *Case) {
			w.discover(0, ipxe)
			w.offer(.01, us, file("http://10.0.0.1/boot/ask"))
			w.request(3.01, ipxe, to(us))
			w.ack(3.02, us, file("http://10.0.0.1/boot/ask"))
			w.get(3.2, "/boot/ask", "200 OK")
		}, but: func(w *wire, _ *Case) {
			w.discover(0, ipxe)
			w.offer(.01, us, file("http://10.0.0.1/boot/ask"), raw(175, 176, 1, 1))
			w.request(.02, ipxe, to(us))
			w.ack(.03, us, file("http://10.0.0.1/boot/ask"))
			w.get(.2, "/boot/ask", "200 OK")
		}, isInstead: true},
		{rule: "no-router", story: func(w *wire, _ *Case) {
			w.address(0, ipxe, file("http://10.0.0.1/boot/ask"), raw(175, 176, 1, 1))
			for i := range 5 {
				w.solicitRouter(1 + float64(i))
			}
			w.get(16, "/boot/ask", "200 OK")
		}, but: func(w *wire, _ *Case) { w.advertiseRouter(1.1) }},
		{rule: "no-script", story: both(toIPXE, answered), but: func(w *wire, _ *Case) { w.get(5, "/boot/ask", "200 OK") }},
		{rule: "http-closed", story: both(toIPXE, answered, func(w *wire, _ *Case) {
			w.tcp(5, true, syn, "")
			w.tcp(5.1, false, rst|ackFlag, "")
		}), but: func(w *wire, _ *Case) { w.tcp(5.05, false, syn|ackFlag, "") }},
		{rule: "http-blocked", story: both(toIPXE, answered, func(w *wire, _ *Case) { w.tcp(5, true, syn, ""); w.tcp(6, true, syn, "") }), but: func(w *wire, _ *Case) { w.tcp(6.1, false, syn|ackFlag, "") }},
		{rule: "router-managed", story: func(w *wire, c *Case) {
			toIPXE(w, c)
			answered(w, c)
			for i := range 3 {
				w.solicit(5 + float64(i))
			}
			w.get(20, "/boot/ask", "200 OK")
		}, but: func(w *wire, _ *Case) { w.advertise(5.1) }, rank: 2},
		{rule: "http-one-way", story: both(toIPXE, answered, func(w *wire, _ *Case) {
			for i := range 3 {
				w.tcp(5+float64(i), true, syn, "")
				w.tcp(5.1+float64(i), false, syn|ackFlag, "")
			}
		}), but: func(w *wire, _ *Case) { w.get(9, "/boot/ask", "200 OK") }},
	}
}

func httpTales() []tale {
	secure := func(alert byte) func(*wire, *Case) {
		return func(w *wire, c *Case) {
			w.address(4, ipxe, file("https://10.0.0.1/boot/ask"))
			w.tcp(5, true, syn, "")
			w.tcp(5.1, false, syn|ackFlag, "")
			w.tcp(5.2, true, ackFlag, "\x16\x03\x01\x00\x50\x01hello")
			w.tcp(5.3, true, ackFlag, "\x15\x03\x03\x00\x02\x02"+string([]byte{alert}))
		}
	}
	again := func(status string) func(*wire, *Case) {
		return func(w *wire, c *Case) {
			normal(w, c)
			for i := range 4 {
				w.get(10+float64(i)*2, "/boot/0123/d/sha256-x/kernel", status)
			}
		}
	}
	fine := func(w *wire, _ *Case) { w.get(60, "/boot/0123/d/sha256-x/kernel", "200 OK") }
	return []tale{
		{rule: "http-large-lost", story: func(w *wire, c *Case) {
			normal(w, c)
			w.get(10, "/boot/0123/d/sha256-x/kernel", "200 OK")
			for i := range 3 {
				w.tcp(11+float64(i), false, ackFlag, "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"+strings.Repeat("x", 1400))
			}
			w.request(15, ipxe, to(us)) // it is on, and small packets come
		}, but: func(w *wire, _ *Case) { w.get(60, "/boot/0123/d/sha256-x/kernel", "200 OK") }},
		{rule: "http-not-found", story: again("404 Not Found"), but: normal, isInstead: true},
		{rule: "http-refused", story: again("403 Forbidden"), but: again("404 Not Found"), isInstead: true},
		{rule: "http-busy", story: again("503 Service Unavailable"), but: fine},
		{rule: "http-redirect", story: again("301 Moved Permanently"), but: again("304 Not Modified"), isInstead: true},
		{rule: "http-old-version", story: func(w *wire, _ *Case) {
			w.address(0, urlUEFI, class("HTTPClient"), file("http://10.0.0.1/boot/snponly.efi"))
			w.tcp(1, true, syn, "")
			w.tcp(1.1, false, syn|ackFlag, "")
			w.tcp(1.2, true, ackFlag, "HEAD /boot/snponly.efi HTTP/1.0\r\n\r\n")
			w.tcp(1.3, false, ackFlag, "HTTP/1.0 200 OK\r\n\r\n")
		}, but: func(w *wire, _ *Case) {
			w.address(0, urlUEFI, class("HTTPClient"), file("http://10.0.0.1/boot/snponly.efi"))
			w.get(1, "/boot/snponly.efi", "200 OK")
		}, isInstead: true},
		{rule: "head-only", story: func(w *wire, _ *Case) {
			w.address(0, urlUEFI, class("HTTPClient"), file("http://10.0.0.1/boot/snponly.efi"))
			w.tcp(1, true, syn, "")
			w.tcp(1.1, false, syn|ackFlag, "")
			w.tcp(1.2, true, ackFlag, "HEAD /boot/snponly.efi HTTP/1.1\r\n\r\n")
			w.tcp(1.3, false, ackFlag, "HTTP/1.1 200 OK\r\n\r\n")
		}, but: func(w *wire, _ *Case) { w.get(2, "/boot/snponly.efi", "200 OK") }},
		{rule: "tls-untrusted", story: secure(48), but: secure(45), isInstead: true},
		{rule: "tls-clock", story: secure(45), but: secure(48), isInstead: true},
		{rule: "tls-no-common", story: secure(40), but: secure(48), isInstead: true},
	}
}

func systemTales() []tale {
	image := func(w *wire, c *Case) { normal(w, c); decided(4.3, c, pxe.BootImage); c.Now = at(400) }
	agent := func(w *wire, c *Case) { normal(w, c); decided(4.3, c, pxe.BootAgent); c.Now = at(400) }
	files := func(_ *wire, c *Case) { sent(6, c, "kernel"); sent(9, c, "initrd") }
	up := func(w *wire, _ *Case) { w.request(40, system, to(us)) }
	began := func(_ *wire, c *Case) { c.event(45, inventory.EventAgentStarted, "") }
	boots := func(n int, boot pxe.Boot) func(*wire, *Case) {
		return func(w *wire, c *Case) {
			for i := range n {
				w.address(float64(i)*120, bios, file("undionly.kpxe"))
				w.read(float64(i)*120+1, 2000, "undionly.kpxe")
				w.address(float64(i)*120+4, ipxe, file("http://10.0.0.1/boot/ask"))
				w.get(float64(i)*120+5, "/boot/ask", "200 OK")
			}
			c.Now, c.Decision.Boot = at(float64(n)*120), boot
			c.event(c.Now.Sub(start).Seconds(), inventory.EventScriptAsked, "")
		}
	}
	return []tale{
		{rule: "no-kernel", story: image, but: files},
		{rule: "no-initrd", story: both(image, func(_ *wire, c *Case) { sent(6, c, "kernel") }), but: func(_ *wire, c *Case) { sent(9, c, "initrd") }},
		{rule: "file-broken-off", story: both(image, func(_ *wire, c *Case) {
			sent(6, c, "kernel")
			c.event(9, inventory.EventArtefactFailed, "initrd stopped at 5 of 10 bytes")
		}), but: func(_ *wire, c *Case) { sent(12, c, "initrd") }},
		{rule: "little-memory", story: both(image, files, func(_ *wire, c *Case) { c.Host.MemoryMiB = 512 }), but: func(_ *wire, c *Case) { c.Host.MemoryMiB = 2048 }},
		{rule: "kernel-silent", story: both(image, files), but: up},
		{rule: "agent-silent", story: both(agent, files, up), but: began},
		{rule: "config-not-fetched", story: both(image, files, up), but: func(_ *wire, c *Case) { c.event(45, inventory.EventConfigSent, "user-data") }},
		{rule: "config-refused", story: both(image, files, func(_ *wire, c *Case) { c.event(45, inventory.EventConfigRefused, "the template has an error") }), but: func(_ *wire, c *Case) { c.event(50, inventory.EventConfigSent, "user-data") }},
		{rule: "agent-stopped", story: both(agent, files, up, began, func(_ *wire, c *Case) { c.Now = at(3000) }), but: func(_ *wire, c *Case) { c.event(2900, inventory.EventAgentReported, "") }},
		{rule: "reported-failed", story: both(image, files, func(_ *wire, c *Case) {
			c.Session.Outcome = inventory.OutcomeFailed
			c.event(50, inventory.EventReported, "failed: no disk")
		}), but: func(_ *wire, c *Case) { c.Session.Outcome = inventory.OutcomeArrived }},
		{rule: "boot-loop", story: boots(5, pxe.BootImage), but: boots(2, pxe.BootImage), isInstead: true},
		{rule: "disk-exit-fails", story: boots(4, pxe.BootDisk), but: both(boots(4, pxe.BootDisk), func(w *wire, _ *Case) {
			for i := range 2 { // those were boots of our agent
				w.get(float64(i)*120+6, "/boot/s1/artefact/ab/kernel", "200 OK")
			}
		}), isInstead: true},
	}
}
