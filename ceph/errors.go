//go:build ceph

package ceph

import (
	"errors"
	"fmt"
	"syscall"
)

// errno gives the error number that Ceph has answered, 0 if it was something else.
func errno(err error) syscall.Errno {
	var coded interface{ ErrorCode() int }
	if !errors.As(err, &coded) {
		return 0
	}
	code := coded.ErrorCode()
	if code < 0 {
		code = -code
	}
	return syscall.Errno(code)
}

// shutOut tells whether the cluster has fenced this client.
func shutOut(err error) bool { return errno(err) == syscall.ESHUTDOWN }

// explain says what to do about what Ceph has answered.
func explain(err error) error {
	switch errno(err) {
	case syscall.EPERM, syscall.EACCES:
		return fmt.Errorf("%w: the user lacks a capability (docs/ceph-caps.md has what is needed)", err)
	case syscall.ESHUTDOWN:
		return fmt.Errorf("%w: the cluster has fenced this client; the next call uses a new one", err)
	case syscall.ETIMEDOUT:
		return fmt.Errorf("%w: monitors or OSDs did not answer in time; it may still be done", err)
	case syscall.ENOSPC, syscall.EDQUOT:
		return fmt.Errorf("%w: the cluster or the pool is full", err)
	}
	return err
}

func explainConnect(err error) error {
	switch errno(err) {
	case syscall.EPERM, syscall.EACCES:
		return fmt.Errorf("%w: the key is not this user's, or there is no such user", err)
	case syscall.ETIMEDOUT:
		return fmt.Errorf("%w: no monitor has answered: check the addresses and the network", err)
	}
	return err
}
