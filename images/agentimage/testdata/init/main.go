// Program init is the first program of a test's machine: it loads what the devices ask for, as the agent does, reports
// the devices, and switches the machine off. It never does anything else.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	for target, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs"} {
		if err := unix.Mount(kind, target, kind, 0, ""); err != nil {
			fmt.Println("mount", target, err)
		}
	}
	fmt.Println("INIT", uptime())
	m := readModules()
	for range 5 { // a driver brings devices of its own
		m.loadForDevices()
	}
	for _, name := range []string{"ext4", "xfs", "btrfs", "vfat", "efivarfs", "ipmi_devintf", "bonding", "hid_generic"} {
		m.load(name)
	}
	for range 20 { // disks are found in the background
		if disks, _ := filepath.Glob("/sys/block/[nsv][vd]*"); len(disks) >= 3 {
			break
		}
		time.Sleep(250 * time.Millisecond)
		m.loadForDevices()
	}
	links, _ := filepath.Glob("/sys/class/net/*/device/driver")
	for _, link := range links {
		driver, _ := os.Readlink(link)
		fmt.Println("HAS", filepath.Base(driver))
	}
	disks, _ := filepath.Glob("/sys/block/*")
	for _, disk := range disks { // its own driver, or that of the controller a namespace of NVMe lies in
		for _, at := range []string{"/device/driver", "/device/device/driver"} {
			if driver, err := os.Readlink(disk + at); err == nil {
				fmt.Println("HAS", filepath.Base(driver))
				break
			}
		}
	}
	known, _ := os.ReadFile("/proc/filesystems")
	fmt.Println("READS", strings.Join(strings.Fields(string(known)), " "))
	fmt.Println("LOADED", len(m.done), "of", len(m.dep))
	fmt.Println("DONE", uptime())
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func uptime() string {
	b, _ := os.ReadFile("/proc/uptime")
	seconds, _, _ := strings.Cut(string(b), " ")
	return seconds
}

type modules struct {
	folder  string
	dep     map[string][]string // name to files, in the order in which they are loaded
	aliases [][2]string
	done    map[string]bool
}

func readModules() *modules {
	var name unix.Utsname
	_ = unix.Uname(&name)
	m := &modules{folder: "/lib/modules/" + unix.ByteSliceToString(name.Release[:]), dep: map[string][]string{}, done: map[string]bool{}}
	text, err := os.ReadFile(m.folder + "/modules.dep")
	if err != nil {
		fmt.Println("FAILED", err)
	}
	for line := range strings.Lines(string(text)) {
		file, needs, _ := strings.Cut(line, ":")
		files := []string{file}
		for _, need := range strings.Fields(needs) {
			files = append([]string{need}, files...)
		}
		m.dep[nameOf(file)] = files
	}
	text, _ = os.ReadFile(m.folder + "/modules.alias")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 {
			m.aliases = append(m.aliases, [2]string{f[1], f[2]})
		}
	}
	return m
}

func nameOf(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".ko"), "-", "_")
}

func (m *modules) loadForDevices() {
	_ = filepath.WalkDir("/sys/devices", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "modalias" {
			return nil
		}
		b, _ := os.ReadFile(p)
		alias := strings.TrimSpace(string(b))
		if strings.HasPrefix(alias, "cpu:") {
			return nil
		}
		for _, a := range m.aliases {
			if ok, _ := filepath.Match(strings.ReplaceAll(a[0], "/", "_"), strings.ReplaceAll(alias, "/", "_")); ok {
				m.load(a[1])
			}
		}
		return nil
	})
}

func (m *modules) load(name string) {
	for _, file := range m.dep[name] {
		if m.done[file] {
			continue
		}
		m.done[file] = true
		f, err := os.Open(m.folder + "/" + file)
		if err == nil {
			err = unix.FinitModule(int(f.Fd()), "", 0)
			f.Close()
		}
		if err != nil && err != unix.EEXIST && err != unix.ENODEV {
			fmt.Println("FAILED", file, err)
		}
	}
}
