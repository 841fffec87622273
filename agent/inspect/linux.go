package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// NVMeRead is an NVMe admin command that only reads.
type NVMeRead int

// The reads.
const (
	NVMeIdentity NVMeRead = iota // Identify Controller
	NVMeHealth                   // Get Log Page, SMART / Health Information
)

// Linux implements Devices for the running machine. Its reads need root.
type Linux struct{}

// nvmeCommand is struct nvme_passthru_cmd of <linux/nvme_ioctl.h>.
type nvmeCommand struct {
	opcode, flags                                    uint8
	_                                                uint16
	nsid, cdw2, cdw3                                 uint32
	metadata, addr                                   uint64
	metadataLen, dataLen                             uint32
	cdw10, cdw11, cdw12, cdw13, cdw14, cdw15, millis uint32
	result                                           uint32
}

const nvmeAdmin = 0xc0484e41 // NVME_IOCTL_ADMIN_CMD

// NVMe implements Devices.
func (Linux) NVMe(disk string, what NVMeRead) ([]byte, error) {
	c := nvmeCommand{opcode: 0x06, cdw10: 1, millis: 3000} // identify, CNS 1: controller
	buf := make([]byte, 4096)
	if what == NVMeHealth {
		buf = buf[:512]
		c.opcode, c.nsid, c.cdw10 = 0x02, 0xffffffff, 0x02|uint32(len(buf)/4-1)<<16
	}
	f, err := os.Open("/dev/" + disk)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The command holds the address as a number, which the runtime would not follow.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&buf[0])
	c.addr, c.dataLen = uint64(uintptr(unsafe.Pointer(&buf[0]))), uint32(len(buf))
	err = ioctl(f, nvmeAdmin, unsafe.Pointer(&c))
	if err != nil {
		return nil, fmt.Errorf("read from the controller of %s: %w", disk, err)
	}
	return buf, nil
}

// scsiCommand is struct sg_io_hdr of <scsi/sg.h>.
type scsiCommand struct {
	interfaceID, direction           int32
	cmdLen, senseLen                 uint8
	iovecs                           uint16
	dataLen                          uint32
	data, cmd, sense                 unsafe.Pointer
	millis, flags                    uint32
	packID                           int32
	_                                uint32
	user                             uintptr
	status, masked, message, written uint8
	hostStatus, driverStatus         uint16
	residual                         int32
	duration, info                   uint32
}

// ATAHealth implements Devices by SMART RETURN STATUS in an ATA PASS-THROUGH (16) command (SAT-3 section 12.2.2.2).
func (Linux) ATAHealth(disk string) (bool, error) {
	f, err := os.Open("/dev/" + disk)
	if err != nil {
		return false, err
	}
	defer f.Close()
	// No data, check condition so that the registers come back; feature 0xda, LBA 0xc24f00, command 0xb0.
	cmd := [16]byte{0x85, 3 << 1, 0x20, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0}
	var sense [32]byte
	c := scsiCommand{interfaceID: 'S', direction: -1, cmdLen: 16, senseLen: uint8(len(sense)), millis: 5000}
	c.cmd, c.sense = unsafe.Pointer(&cmd), unsafe.Pointer(&sense)
	err = ioctl(f, 0x2285, unsafe.Pointer(&c)) // SG_IO
	if err != nil {
		return false, fmt.Errorf("ask %s for its health: %w", disk, err)
	}
	return smartStatus(sense[:])
}

// smartStatus reads the registers from descriptor sense data: LBA mid and high are c24f of a well disk, 2cf4 of one that
// expects to fail.
func smartStatus(sense []byte) (bool, error) {
	if len(sense) < 22 || sense[0]&0x7f != 0x72 || sense[8] != 0x09 {
		return false, errors.New("the disk does not tell its health")
	}
	switch mid, high := sense[17], sense[19]; {
	case mid == 0x4f && high == 0xc2:
		return true, nil
	case mid == 0xf4 && high == 0x2c:
		return false, nil
	}
	return false, errors.New("the disk does not tell its health")
}

// TPM implements Devices.
func (Linux) TPM(command []byte) ([]byte, error) {
	f, err := os.OpenFile("/dev/tpmrm0", os.O_RDWR, 0)
	if err != nil {
		f, err = os.OpenFile("/dev/tpm0", os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Write(command); err != nil {
		return nil, fmt.Errorf("ask the TPM: %w", err)
	}
	buf := make([]byte, 4096)
	n, err := f.Read(buf)
	if err != nil {
		return nil, fmt.Errorf("read from the TPM: %w", err)
	}
	return buf[:n], nil
}

// PermanentMAC implements Devices.
func (Linux) PermanentMAC(port string) (inventory.MAC, error) {
	l, err := netlink.LinkByName(port)
	if err != nil {
		return "", err
	}
	return inventory.ParseMAC(l.Attrs().PermHWAddr.String())
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// KCS is the BMC port of the running machine, through the kernel's IPMI driver. One goroutine uses it.
type KCS struct{ file *os.File }

// OpenBMC opens the machine's BMC. The error is NotFound when it has none, or the image lacks the driver for it.
func OpenBMC() (*KCS, error) {
	for _, name := range []string{"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err == nil {
			return &KCS{f}, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
	}
	return nil, inventory.Errorf(inventory.NotFound, "this machine has no BMC that answers in band").
		WithHint("the image needs the modules ipmi_si and ipmi_devintf")
}

// Close closes it.
func (k *KCS) Close() error { return k.file.Close() }

// ipmiMessage, ipmiRequest and ipmiReceive are the structures of <linux/ipmi.h>.
type ipmiMessage struct {
	netFn, command uint8
	dataLen        uint16
	data           unsafe.Pointer
}

type ipmiRequest struct {
	addr    unsafe.Pointer
	addrLen uint32
	id      int
	message ipmiMessage
}

type ipmiReceive struct {
	kind    int32
	addr    unsafe.Pointer
	addrLen uint32
	id      int
	message ipmiMessage
}

// ipmiAddress is struct ipmi_system_interface_addr: the BMC itself.
type ipmiAddress struct {
	kind    int32
	channel int16
	lun     uint8
}

const (
	ipmiSend    = 0x8028690d // IPMICTL_SEND_COMMAND
	ipmiTake    = 0xc030690b // IPMICTL_RECEIVE_MSG_TRUNC
	ipmiTimeout = 5 * time.Second
)

// Do implements BMCPort. It waits for an answer for five seconds at most, and ignores late answers to earlier
// requests.
func (k *KCS) Do(ctx context.Context, netFn, command byte, data ...byte) ([]byte, error) {
	to := ipmiAddress{kind: 0x0c, channel: 0x0f}
	r := ipmiRequest{addr: unsafe.Pointer(&to), addrLen: uint32(unsafe.Sizeof(to)), id: int(command)}
	r.message = ipmiMessage{netFn: netFn, command: command, dataLen: uint16(len(data))}
	if len(data) > 0 {
		r.message.data = unsafe.Pointer(&data[0])
	}
	err := ioctl(k.file, ipmiSend, unsafe.Pointer(&r))
	if err != nil {
		return nil, fmt.Errorf("ask the BMC: %w", err)
	}
	deadline := time.Now().Add(ipmiTimeout)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		fds := []unix.PollFd{{Fd: int32(k.file.Fd()), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 200); n == 0 || errors.Is(err, unix.EINTR) {
			continue
		}
		kind, cmd, answer, err := k.take()
		switch {
		case err != nil:
			return nil, fmt.Errorf("read from the BMC: %w", err)
		case kind != 1 || cmd != command: // 1 is a response; late answers of earlier requests are passed over
			continue
		case len(answer) == 0:
			return nil, errors.New("the BMC gave an empty answer")
		case answer[0] != 0:
			return nil, CompletionError(answer[0])
		}
		return answer[1:], nil
	}
	return nil, inventory.Errorf(inventory.Unavailable, "the BMC does not answer in band").WithHint("reset the BMC: ipmitool mc reset cold")
}

// take reads one message.
func (k *KCS) take() (kind int32, command byte, data []byte, err error) {
	var from [64]byte
	buf := make([]byte, 1024)
	r := ipmiReceive{addr: unsafe.Pointer(&from), addrLen: uint32(len(from))}
	r.message = ipmiMessage{dataLen: uint16(len(buf)), data: unsafe.Pointer(&buf[0])}
	err = ioctl(k.file, ipmiTake, unsafe.Pointer(&r))
	if err != nil && !errors.Is(err, unix.EMSGSIZE) {
		return 0, 0, nil, err
	}
	return r.kind, r.message.command, buf[:min(int(r.message.dataLen), len(buf))], nil
}

// CompletionError is an IPMI completion code other than 0.
type CompletionError byte

// Error names the usual codes (IPMI 2.0 table 5-2).
func (c CompletionError) Error() string {
	names := map[CompletionError]string{
		0xc0: "the BMC is busy", 0xc1: "the BMC does not know the command", 0xc2: "the BMC does not know the command for this LUN",
		0xc3: "timeout", 0xc7: "wrong length", 0xc8: "too long", 0xc9: "parameter out of range", 0xcb: "no such thing",
		0xcc: "invalid field", 0xd4: "insufficient privilege", 0xd5: "not in this state", 0x80: "parameter not supported", 0xff: "unspecified error",
	}
	if name, ok := names[c]; ok {
		return fmt.Sprintf("%s (IPMI code 0x%02x)", name, byte(c))
	}
	return strings.ToLower(fmt.Sprintf("IPMI code 0x%02x", byte(c)))
}
