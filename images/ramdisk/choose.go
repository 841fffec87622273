package ramdisk

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// classes are the folders and files of the kernel's tree that an agent can be in need of: to reach the server, to find
// every disk, to read and write a seed, to ask the BMC, and to see whether the hardware is well.
var classes = []string{
	// Network
	"kernel/drivers/net/ethernet/", "kernel/drivers/net/phy/", "kernel/drivers/net/mdio/", "kernel/drivers/net/pcs/", "kernel/drivers/net/mdio.ko",
	"kernel/drivers/net/virtio_net.ko", "kernel/drivers/net/vmxnet3/", "kernel/drivers/net/hyperv/", "kernel/drivers/net/xen-netfront.ko",
	"kernel/drivers/net/bonding/", "kernel/net/8021q/", "kernel/drivers/net/usb/",
	// Disks
	"kernel/drivers/ata/", "kernel/drivers/scsi/", "kernel/drivers/message/fusion/", "kernel/drivers/nvme/host/", "kernel/drivers/nvdimm/",
	"kernel/drivers/block/virtio_blk.ko", "kernel/drivers/block/xen-blkfront.ko", "kernel/drivers/block/loop.ko", "kernel/drivers/block/mtip32xx/",
	"kernel/drivers/md/", "kernel/drivers/mmc/", "kernel/drivers/pci/controller/", "kernel/drivers/cdrom/", "kernel/drivers/usb/storage/",
	"kernel/drivers/usb/host/", "kernel/drivers/usb/core/", "kernel/drivers/usb/common/",
	// File systems
	"kernel/fs/ext4/", "kernel/fs/xfs/", "kernel/fs/btrfs/", "kernel/fs/fat/", "kernel/fs/isofs/", "kernel/fs/efivarfs/",
	// BMC, TPM, sensors, memory errors
	"kernel/drivers/char/ipmi/", "kernel/drivers/char/tpm/", "kernel/drivers/char/hw_random/", "kernel/drivers/edac/",
	"kernel/drivers/hwmon/coretemp.ko", "kernel/drivers/hwmon/k10temp.ko", "kernel/drivers/hwmon/drivetemp.ko", "kernel/drivers/firmware/dmi-sysfs.ko",
	"kernel/drivers/i2c/busses/i2c-i801.ko",
	// Virtual machines, and a keyboard for the shell
	"kernel/drivers/virtio/", "kernel/drivers/char/virtio_console.ko", "kernel/drivers/hv/", "kernel/drivers/scsi/vmw_pvscsi.ko",
	"kernel/drivers/hid/hid.ko", "kernel/drivers/hid/hid-generic.ko", "kernel/drivers/hid/hid-hyperv.ko", "kernel/drivers/hid/usbhid/",
	"kernel/drivers/input/serio/", "kernel/drivers/input/keyboard/atkbd.ko",
}

// unwanted are parts of the classes that no server boots with.
var unwanted = []string{
	"kernel/drivers/net/ethernet/mellanox/mlxsw/", "kernel/drivers/net/ethernet/*/*_vdpa*", "kernel/drivers/net/ethernet/3com/", "kernel/drivers/net/ethernet/8390/",
	"kernel/drivers/net/usb/hso.ko", "kernel/drivers/scsi/pcmcia/", "kernel/drivers/ata/pata_*", "kernel/drivers/scsi/scsi_debug.ko",
	"kernel/drivers/scsi/fcoe/", "kernel/drivers/scsi/aic94xx/", "kernel/drivers/scsi/bfa/", "kernel/drivers/usb/host/*-hcd-platform.ko",
	"kernel/drivers/md/bcache/", "kernel/drivers/md/persistent-data/", "kernel/drivers/md/dm-vdo/",
	// These pull in RDMA, cluster locks or the parts of a storage server.
	"kernel/drivers/nvme/host/nvme-rdma.ko", "kernel/drivers/md/md-cluster.ko", "kernel/drivers/scsi/qla2xxx/tcm_qla2xxx.ko", "kernel/drivers/scsi/elx/",
	"kernel/drivers/md/dm-log-userspace.ko",
}

// needs are modules that others ask the kernel for at run time, without saying so in their files. The kernel would call
// modprobe, which a RAM disk does not have, so they are loaded with those that ask.
var needs = map[string][]string{
	"vfat":      {"nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8"},
	"msdos":     {"nls_cp437", "nls_ascii", "nls_iso8859_1"},
	"isofs":     {"nls_iso8859_1", "nls_utf8"},
	"ext4":      {"crc32c_generic"},
	"ipmi_si":   {"ipmi_devintf"},
	"ipmi_ssif": {"ipmi_devintf"},
}

// moduleSet is the choice of modules.
type moduleSet struct {
	all    *catalogue
	chosen []*module // by path
	// loads are, for each chosen module, those that must be loaded before it, in the order of modules.dep: the last first.
	loads map[string][]string
}

// choose chooses the modules for a RAM disk, with all that they need.
func choose(ctx context.Context, k *Kernel, extra tree, include, exclude []string) (*moduleSet, error) {
	all, err := newCatalogue(k, extra)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, file := range all.files {
		_, isExtra := extra["lib/modules/"+k.Version+"/"+file]
		isWanted := isExtra || matchAny(classes, name, file) && !matchAny(unwanted, name, file)
		if matchAny(include, name, file) || isWanted && !matchAny(exclude, name, file) {
			names = append(names, name)
		}
	}
	for _, p := range slices.Concat(include, exclude) {
		if err := all.checkPattern(p); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 && len(all.builtin) == 0 {
		return nil, inventory.Errorf(inventory.Invalid, "the folder of modules of kernel %s is empty", k.Version).WithHint(howToGetOne)
	}
	slices.Sort(names)
	set := &moduleSet{all: all, loads: map[string][]string{}}
	chosen := map[string]*module{}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := set.take(chosen, name, nil); err != nil {
			return nil, err
		}
	}
	set.chosen = slices.SortedFunc(maps.Values(chosen), func(a, b *module) int { return strings.Compare(a.path, b.path) })
	return set, nil
}

// take chooses a module and, first, what it needs. chain is how it was come by.
func (s *moduleSet) take(chosen map[string]*module, name string, chain []string) error {
	if chosen[name] != nil || slices.Contains(chain, name) {
		return nil
	}
	m, err := s.all.get(name)
	if err != nil {
		return err
	}
	if m == nil {
		if s.all.builtin[name] || len(chain) == 0 {
			return nil
		}
		return inventory.Errorf(inventory.Invalid, "module %s needs module %s, which the kernel does not have", chain[len(chain)-1], inventory.Clean(name, 100)).
			WithHint("the folder of modules is not complete, or a driver pack is for another kernel")
	}
	var loads []string // the first first
	soft, err := s.resolve(m)
	if err != nil {
		return err
	}
	for _, need := range slices.Concat(soft, m.depends) {
		if err := s.take(chosen, need, append(chain, name)); err != nil {
			return err
		}
		if s.all.files[need] == "" {
			continue // built in
		}
		for _, one := range slices.Backward(append([]string{need}, s.loads[need]...)) {
			if one != name && !slices.Contains(loads, one) {
				loads = append(loads, one)
			}
		}
	}
	slices.Reverse(loads)
	s.loads[name] = loads
	chosen[name] = m
	return nil
}

// resolve returns the modules that a module asks for softly and that always load: ciphers and checksums by their alias,
// in the form that runs on every processor, and what it asks for at run time.
func (s *moduleSet) resolve(m *module) (names []string, err error) {
	for _, name := range needs[m.name] {
		if s.all.files[name] != "" {
			names = append(names, name)
		}
	}
	for _, soft := range m.before {
		name := canonical(soft)
		if s.all.files[name] != "" || s.all.builtin[name] {
			continue // it stays a soft dependency
		}
		for _, guess := range []string{name + "_generic", strings.TrimSuffix(name, "64") + "_generic", strings.TrimSuffix(name, "_256") + "_generic"} {
			c, err := s.all.get(guess)
			if err != nil {
				return nil, err
			}
			if c != nil && slices.Contains(c.aliases, soft) {
				names = append(names, guess)
				break
			}
		}
	}
	return names, nil
}

// matchAny reports whether a module fits one of the patterns.
func matchAny(patterns []string, name, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchModule(p, name, file) })
}

// matchModule matches a pattern without a slash with the name of a module, one that ends in a slash with a folder it is
// in, and any other with its path, packed or not.
func matchModule(pattern, name, file string) bool {
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(canonical(pattern), name)
		return ok
	}
	if folder, ok := strings.CutSuffix(pattern, "/"); ok {
		n := strings.Count(folder, "/") + 1
		parts := strings.Split(file, "/")
		if len(parts) <= n {
			return false
		}
		ok, _ := path.Match(folder, strings.Join(parts[:n], "/"))
		return ok
	}
	unpacked, _, _ := strings.Cut(path.Base(file), ".ko")
	ok, _ := path.Match(pattern, path.Join(path.Dir(file), unpacked+".ko"))
	return ok
}

// checkPattern refuses a pattern that fits nothing, which is a slip of the pen.
func (c *catalogue) checkPattern(pattern string) error {
	if _, err := path.Match(pattern, "x"); err != nil {
		return inventory.Errorf(inventory.Invalid, "%s is no pattern", inventory.Clean(pattern, 100)).
			WithHint("patterns are as in a shell: ixgbe, nf_*, kernel/drivers/gpu/")
	}
	for name, file := range c.files {
		if matchModule(pattern, name, file) {
			return nil
		}
	}
	if c.builtin[canonical(pattern)] {
		return nil
	}
	return inventory.Errorf(inventory.NotFound, "kernel %s has no module %s", c.kernel.Version, inventory.Clean(pattern, 100)).
		WithHint("patterns are module names (ixgbe, nf_*) or paths (kernel/drivers/gpu/); a kernel for clouds has few modules")
}
