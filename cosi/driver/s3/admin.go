package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// admin is a client of versitygw's admin API: PATCH requests with XML bodies, signed as S3 requests are. It
// has no call that looks at one account, so a look reads the list.
type admin struct {
	endpoint, region string
	keys             aws.CredentialsProvider
	http             *http.Client
}

// account is one, as the API writes it.
type account struct {
	Access    string
	Secret    string
	Role      string
	UserID    int
	GroupID   int
	ProjectID int
}

// roleUser may do what bucket policies say, and make no buckets.
const roleUser = "user"

// maxAnswer bounds what is read of an answer. A list of 100,000 accounts fits.
const maxAnswer = 64 << 20

// adminError is an answer that is not success.
type adminError struct {
	status  int
	Code    string
	Message string
}

var _ smithy.APIError = (*adminError)(nil)

func (e *adminError) Error() string        { return fmt.Sprintf("%s: %s", e.Code, e.Message) }
func (e *adminError) ErrorCode() string    { return e.Code }
func (e *adminError) ErrorMessage() string { return e.Message }
func (e *adminError) ErrorFault() smithy.ErrorFault {
	if e.status >= 500 {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

// create makes an account; errUserExists if there is one of that access key id.
func (a *admin) create(ctx context.Context, acc account) error {
	_, err := a.call(ctx, "create-user", nil, struct {
		XMLName xml.Name `xml:"Account"`
		account
	}{account: acc})
	return err
}

// setSecret replaces the account's key.
func (a *admin) setSecret(ctx context.Context, access, secret string) error {
	_, err := a.call(ctx, "update-user", url.Values{"access": {access}}, struct {
		XMLName xml.Name `xml:"MutableProps"`
		Secret  string
	}{Secret: secret})
	return err
}

// remove deletes an account; absent is success.
func (a *admin) remove(ctx context.Context, access string) error {
	_, err := a.call(ctx, "delete-user", url.Values{"access": {access}}, nil)
	return err
}

// list answers all accounts but root, in the order of their access key ids.
func (a *admin) list(ctx context.Context) ([]account, error) {
	body, err := a.call(ctx, "list-users", nil, nil)
	if err != nil {
		return nil, err
	}
	var got struct {
		Accounts []account
	}
	if err := xml.Unmarshal(body, &got); err != nil {
		return nil, fmt.Errorf("list-users: the answer cannot be read: %w", err)
	}
	return got.Accounts, nil
}

// get answers one account.
func (a *admin) get(ctx context.Context, access string) (acc account, found bool, err error) {
	all, err := a.list(ctx)
	for _, acc := range all {
		if acc.Access == access {
			return acc, true, err
		}
	}
	return account{}, false, err
}

// changeBucketOwner gives a bucket to an account.
func (a *admin) changeBucketOwner(ctx context.Context, bucket, owner string) error {
	_, err := a.call(ctx, "change-bucket-owner", url.Values{"bucket": {bucket}, "owner": {owner}}, nil)
	return err
}

// call makes one request. Its errors never quote what was sent: that holds secrets.
func (a *admin) call(ctx context.Context, name string, query url.Values, body any) ([]byte, error) {
	text := []byte{}
	if body != nil {
		var err error
		if text, err = xml.Marshal(body); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	target := strings.TrimSuffix(a.endpoint, "/") + "/" + name
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, target, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	keys, err := a.keys.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, hash, "s3", a.region, time.Now()); err != nil {
		return nil, fmt.Errorf("%s: sign: %w", name, err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if resp.StatusCode/100 != 2 {
		e := &adminError{status: resp.StatusCode}
		if err := xml.Unmarshal(answer, e); err != nil || e.Code == "" {
			e.Code, e.Message = "HTTP "+resp.Status, "no more was said"
		}
		return nil, fmt.Errorf("%s: %w", name, e)
	}
	return answer, nil
}
