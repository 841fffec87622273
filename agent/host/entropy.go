package host

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Stir makes the kernel's random numbers available where it would wait for them. A machine without a hardware source,
// booted to memory and idle, may gather none for minutes. Every program that asks then waits. It credits this boot's
// session, which the server drew, and the jitter of this very loop. That is good enough for the numbers of packets and
// connections; the agent makes no key that outlives it.
func Stir(session string, log *slog.Logger) {
	var probe [1]byte
	// EAGAIN is the only sign that the pool is not ready. Any other result, even an error, is no reason to credit entropy.
	if _, err := unix.Getrandom(probe[:], unix.GRND_NONBLOCK); err != unix.EAGAIN {
		return
	}
	f, err := os.OpenFile("/dev/random", os.O_WRONLY, 0)
	if err != nil {
		log.Warn("random numbers are not there yet", "err", err)
		return
	}
	defer f.Close()
	var pool struct {
		// struct rand_pool_info of linux/random.h: entropy_count in bits, buf_size in bytes, then the bytes.
		bits, size int32
		data       [32]byte
	}
	h := sha256.New()
	h.Write([]byte(session))
	var stamp [8]byte
	for range jitterRounds {
		binary.LittleEndian.PutUint64(stamp[:], uint64(time.Now().UnixNano()))
		h.Write(stamp[:])
		_ = h.Sum(nil) // work whose duration varies with caches and interrupts
	}
	pool.bits, pool.size = 8*int32(len(pool.data)), int32(len(pool.data))
	copy(pool.data[:], h.Sum(nil))
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&pool))); errno != 0 {
		log.Warn("random numbers are not there yet", "err", errno)
		return
	}
	log.Info("random numbers were not there yet: helped out")
}

// jitterRounds take some milliseconds.
const jitterRounds = 20_000
