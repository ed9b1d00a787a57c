package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/custody-storage/custody/cosi/wire"
)

// Tags of the owner mark of a bucket.
const (
	tagName  = "custody.dev/name"
	tagOwner = "custody.dev/owner"
)

// marks are the tags that a bucket is made with.
func (b *Backend) marks(name string) []types.Tag {
	return []types.Tag{
		{Key: aws.String(tagName), Value: aws.String(name)},
		{Key: aws.String(tagOwner), Value: aws.String(b.o.Owner)},
	}
}

// bucketOwner reads a mark: the name that this driver made the bucket for, or words about who else made it,
// or nothing if the bucket bears no mark. The words hold a space, which no name does.
func (b *Backend) bucketOwner(tags []types.Tag) string {
	var name, owner string
	for _, t := range tags {
		switch aws.ToString(t.Key) {
		case tagName:
			name = aws.ToString(t.Value)
		case tagOwner:
			owner = aws.ToString(t.Value)
		}
	}
	switch owner {
	case "":
		return ""
	case b.o.Owner:
		return name
	}
	return "owner " + owner
}

// projectMark is the owner mark of an account: a positive number of 31 bits, which every build of versitygw
// can hold. It guards against accidents, as does the tag of a bucket: whoever may make accounts could
// forge either.
func (b *Backend) projectMark(name string) int {
	sum := sha256.Sum256([]byte("custody account mark\x00" + b.o.Owner + "\x00" + name))
	return int(binary.BigEndian.Uint32(sum[:4])>>1) | 1 // never 0, which is no mark
}

// secretOf derives an account's secret key.
func (b *Backend) secretOf(name string) wire.Secret {
	seed := []byte(b.o.Seed.Reveal())
	if len(seed) == 0 {
		seed = keyed([]byte(b.o.SecretKey.Reveal()), "custody seed")
	}
	sum := keyed(seed, "custody account secret\x00"+b.o.Owner+"\x00"+name)
	return wire.Secret(base64.RawURLEncoding.EncodeToString(sum)[:40])
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text))
	return h.Sum(nil)
}
