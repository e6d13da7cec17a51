package redact

import (
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"
)

// action is what a keyword sets off; start and end are those of the keyword.
type action func(s *scanner, start, end int)

// tokenWindow is how much of the text a token's pattern may see from its keyword on.
const tokenWindow = 2 << 10

// tokenShape is a key that bears a prefix of its own. The pattern follows the prefix, RE2 syntax, anchored; its prefix is
// the keyword, matched in its own case.
type tokenShape struct {
	rule    ruleID
	prefix  string
	pattern string
	// uniform keys may be as regular as they like; others must look random, since documentation is full of xxxx.
	uniform bool
	// anywhere drops the rule that no letter or digit stands in front.
	anywhere bool
	// digits: without a digit it is a word.
	digits bool
}

// tokenShapes follow what the vendors document of their keys.
var tokenShapes = []tokenShape{
	{rule: ruleOpenAI, prefix: "sk-", pattern: `[A-Za-z0-9_-]{32,208}`, digits: true},
	{rule: ruleAnthropic, prefix: "sk-ant-", pattern: `(?:api|admin|oat|sid)[0-9]{2}-[A-Za-z0-9_-]{72,120}`},
	{rule: ruleGitHub, prefix: "ghp_", pattern: `[A-Za-z0-9]{36,255}`},
	{rule: ruleGitHub, prefix: "gho_", pattern: `[A-Za-z0-9]{36,255}`},
	{rule: ruleGitHub, prefix: "ghu_", pattern: `[A-Za-z0-9]{36,255}`},
	{rule: ruleGitHub, prefix: "ghs_", pattern: `[A-Za-z0-9]{36,255}`},
	{rule: ruleGitHub, prefix: "ghr_", pattern: `[A-Za-z0-9]{36,255}`},
	{rule: ruleGitHub, prefix: "github_pat_", pattern: `[A-Za-z0-9_]{36,255}`},
	{rule: ruleGitLab, prefix: "glpat-", pattern: `(?:[\w-]{27,300}\.[0-9a-z]{9}|[\w-]{20})`},
	{rule: ruleGitLab, prefix: "gldt-", pattern: `[\w-]{20}`},
	{rule: ruleGitLab, prefix: "glft-", pattern: `[\w-]{20}`},
	{rule: ruleGitLab, prefix: "glsoat-", pattern: `[\w-]{20}`},
	{rule: ruleGitLab, prefix: "glffct-", pattern: `[\w-]{20}`},
	{rule: ruleGitLab, prefix: "glrt-", pattern: `(?:t\d_[\w-]{27,300}\.[0-9a-z]{9}|[\w-]{20})`},
	{rule: ruleGitLab, prefix: "glcbt-", pattern: `(?:[0-9a-zA-Z]{1,5}_)?[\w-]{20}`},
	{rule: ruleGitLab, prefix: "glimt-", pattern: `[\w-]{25}`},
	{rule: ruleGitLab, prefix: "glptt-", pattern: `[\w-]{40}`},
	{rule: ruleGitLab, prefix: "glagent-", pattern: `[\w-]{50}`},
	{rule: ruleGitLab, prefix: "gloas-", pattern: `[\w-]{64}`},
	{rule: ruleGitLab, prefix: "GR1348941", pattern: `[\w-]{20}`},
	{rule: ruleGitLab, prefix: "_gitlab_session=", pattern: `[0-9a-z]{32}`},
	{rule: ruleAWS, prefix: "AKIA", pattern: `[A-Z2-7]{16}`},
	{rule: ruleAWS, prefix: "ASIA", pattern: `[A-Z2-7]{16}`},
	{rule: ruleAWS, prefix: "ABIA", pattern: `[A-Z2-7]{16}`},
	{rule: ruleAWS, prefix: "ACCA", pattern: `[A-Z2-7]{16}`},
	{rule: ruleAWS, prefix: "A3T", pattern: `[A-Z0-9][A-Z2-7]{16}`},
	{rule: ruleAWS, prefix: "ABSKQmVkcm9ja0FQSUtleS", pattern: `[A-Za-z0-9+/]{90,280}={0,2}`, uniform: true},
	{rule: ruleAWS, prefix: "ABSK", pattern: `[A-Za-z0-9+/]{109,269}={0,2}`},
	{rule: ruleAWS, prefix: "bedrock-api-key-", pattern: `YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=_.-]*`},
	{rule: ruleGoogle, prefix: "AIza", pattern: `[\w-]{35}`},
	{rule: ruleGoogle, prefix: "GOCSPX-", pattern: `[\w-]{28}`},
	{rule: ruleGoogle, prefix: "ya29.", pattern: `[\w-]{20,400}`},
	{rule: ruleGoogle, prefix: "1//0", pattern: `[\w-]{40,200}`, digits: true},
	{rule: ruleAzure, prefix: "sig=", pattern: `[A-Za-z0-9%+/]{42,64}(?:=|%3[Dd])`, anywhere: true, digits: true},
	{rule: ruleAzure, prefix: "AccountKey=", pattern: `[A-Za-z0-9+/]{40,100}={0,2}`},
	{rule: ruleAzure, prefix: "SharedAccessKey=", pattern: `[A-Za-z0-9+/]{40,100}={0,2}`},
	{rule: ruleSlack, prefix: "xoxb-", pattern: `[\w-]{18,250}`},
	{rule: ruleSlack, prefix: "xoxp-", pattern: `[\w-]{18,250}`},
	{rule: ruleSlack, prefix: "xoxa-", pattern: `[\w-]{10,250}`},
	{rule: ruleSlack, prefix: "xoxo-", pattern: `[0-9][\w-]{15,250}`},
	{rule: ruleSlack, prefix: "xoxs-", pattern: `[0-9][\w-]{15,250}`},
	{rule: ruleSlack, prefix: "xoxr-", pattern: `[\w-]{18,250}`},
	{rule: ruleSlack, prefix: "xoxe-", pattern: `\d{1,13}-[\w-]{30,300}`},
	{rule: ruleSlack, prefix: "xoxe.xox", pattern: `[bp]-\d-[\w-]{30,300}`},
	{rule: ruleSlack, prefix: "xoxc-", pattern: `[0-9][\w-]{30,250}`},
	{rule: ruleSlack, prefix: "xoxd-", pattern: `[\w%+/=-]{40,300}`},
	{rule: ruleSlack, prefix: "xapp-", pattern: `\d-[\w-]{20,250}`},
	{rule: ruleStripe, prefix: "sk_live_", pattern: `[A-Za-z0-9]{16,120}`, uniform: true},
	{rule: ruleStripe, prefix: "sk_test_", pattern: `[A-Za-z0-9]{16,120}`, uniform: true},
	{rule: ruleStripe, prefix: "rk_live_", pattern: `[A-Za-z0-9]{16,120}`, uniform: true},
	{rule: ruleStripe, prefix: "rk_test_", pattern: `[A-Za-z0-9]{16,120}`, uniform: true},
	{rule: ruleStripe, prefix: "sk_prod_", pattern: `[A-Za-z0-9]{16,120}`},
	{rule: ruleStripe, prefix: "whsec_", pattern: `[A-Za-z0-9+/]{24,64}=?`},
	{rule: rulePackages, prefix: "npm_", pattern: `[A-Za-z0-9]{36}`},
	{rule: rulePackages, prefix: "//registry.", pattern: `[\w./:-]{3,80}/:_authToken=[\w-]{8,80}`, uniform: true, anywhere: true},
	{rule: rulePackages, prefix: "pypi-AgE", pattern: `[\w-]{50,400}`},
	{rule: rulePackages, prefix: "rubygems_", pattern: `[a-f0-9]{48}`},
	{rule: rulePackages, prefix: "CLOJARS_", pattern: `[a-z0-9]{60}`},
	{rule: rulePackages, prefix: "cio", pattern: `[A-Za-z0-9]{32}`, digits: true},
	{rule: rulePackages, prefix: "dckr_pat_", pattern: `[\w-]{24,40}`},
	{rule: rulePackages, prefix: "dckr_oat_", pattern: `[\w-]{24,40}`},
	{rule: rulePackages, prefix: "AKC", pattern: `[A-Za-z0-9]{10,80}`, uniform: true},
	{rule: rulePackages, prefix: "AP6", pattern: `[A-Za-z0-9]{10,80}`, uniform: true},
	{rule: rulePackages, prefix: "cmVmd", pattern: `[A-Za-z0-9]{59}`},
	{rule: ruleHuggingFace, prefix: "hf_", pattern: `[A-Za-z0-9]{34}`},
	{rule: ruleHuggingFace, prefix: "api_org_", pattern: `[A-Za-z]{34}`},
	{rule: ruleMessaging, prefix: "SG.", pattern: `[\w=-]{16,32}\.[\w=-]{32,64}`},
	{rule: ruleMessaging, prefix: "SG.", pattern: `[\w=.-]{66}`},
	{rule: ruleMessaging, prefix: "AC", pattern: `(?:[a-f0-9]{32}|x{32})`, uniform: true},
	{rule: ruleMessaging, prefix: "SK", pattern: `(?:[a-fA-F0-9]{32}|x{32})`, uniform: true},
	{rule: ruleMessaging, prefix: "key-", pattern: `[a-f0-9]{32}`},
	{rule: ruleMessaging, prefix: "xkeysib-", pattern: `[a-f0-9]{64}-[a-zA-Z0-9]{16}`},
	{rule: rulePrivateKey, prefix: "AGE-SECRET-KEY-1", pattern: `[A-Z0-9]{58}`, uniform: true},
	{rule: rulePrivateKey, prefix: "A3-", pattern: `[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}`},
	{rule: rulePrivateKey, prefix: "ops_eyJ", pattern: `[A-Za-z0-9+/]{200,}={0,3}`},
	{rule: ruleVendor, prefix: "gsk_", pattern: `[A-Za-z0-9]{52}`},
	{rule: ruleVendor, prefix: "pplx-", pattern: `[A-Za-z0-9]{48}`},
	{rule: ruleVendor, prefix: "dapi", pattern: `[a-fA-F0-9]{32}(?:-\d)?`},
	{rule: ruleVendor, prefix: "hvs.", pattern: `[\w-]{80,160}`},
	{rule: ruleVendor, prefix: "hvb.", pattern: `[\w-]{100,400}`},
	{rule: ruleVendor, prefix: "s.", pattern: `[A-Za-z0-9]{24}`, digits: true},
	{rule: ruleVendor, prefix: "glc_", pattern: `[A-Za-z0-9+/]{32,400}={0,3}`},
	{rule: ruleVendor, prefix: "glsa_", pattern: `[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}`},
	{rule: ruleVendor, prefix: "eyJrIjoi", pattern: `[A-Za-z0-9+/]{64,400}={0,3}`},
	{rule: ruleVendor, prefix: "tskey-", pattern: `[a-z]+-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{16,48}`, uniform: true, anywhere: true},
	{rule: ruleVendor, prefix: "vcp_", pattern: `[A-Za-z0-9]{24,64}`},
	{rule: ruleVendor, prefix: "vci_", pattern: `[A-Za-z0-9]{24,64}`},
	{rule: ruleVendor, prefix: "vca_", pattern: `[A-Za-z0-9]{24,64}`},
	{rule: ruleVendor, prefix: "vcr_", pattern: `[A-Za-z0-9]{24,64}`},
	{rule: ruleVendor, prefix: "vck_", pattern: `[A-Za-z0-9]{24,64}`},
	{rule: ruleVendor, prefix: "lin_api_", pattern: `[A-Za-z0-9]{40}`},
	{rule: ruleVendor, prefix: "lin_oauth_", pattern: `[A-Za-z0-9]{40,64}`},
	{rule: ruleVendor, prefix: "dop_v1_", pattern: `[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "doo_v1_", pattern: `[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "dor_v1_", pattern: `[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "dp.", pattern: `(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}`},
	{rule: ruleVendor, prefix: "dt0c01.", pattern: `[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}`},
	{rule: ruleVendor, prefix: "dnkey-", pattern: `[a-z0-9=_-]{26}-[a-z0-9=_-]{52}`},
	{rule: ruleVendor, prefix: "duffel_", pattern: `(?:test|live)_[A-Za-z0-9_=-]{43}`},
	{rule: ruleVendor, prefix: "EZAK", pattern: `[A-Za-z0-9]{54}`},
	{rule: ruleVendor, prefix: "EZTK", pattern: `[A-Za-z0-9]{54}`},
	{rule: ruleVendor, prefix: "EAA", pattern: `[A-Z][A-Za-z0-9]{100,400}`},
	{rule: ruleVendor, prefix: "EAACEdEose0cBA", pattern: `[A-Za-z0-9]{20,400}`},
	{rule: ruleVendor, prefix: "FLWPUBK_TEST-", pattern: `[a-h0-9]{32}-X`},
	{rule: ruleVendor, prefix: "FLWSECK_TEST-", pattern: `[a-h0-9]{12,32}(?:-X)?`},
	{rule: ruleVendor, prefix: "FLWSECK-", pattern: `[a-h0-9]{12,32}(?:-X)?`},
	{rule: ruleVendor, prefix: "fo1_", pattern: `[\w-]{43}`},
	{rule: ruleVendor, prefix: "fm1", pattern: `[ar]_[A-Za-z0-9+/]{100,}={0,3}`},
	{rule: ruleVendor, prefix: "fm2_", pattern: `[A-Za-z0-9+/]{100,}={0,3}`},
	{rule: ruleVendor, prefix: "fio-u-", pattern: `[A-Za-z0-9_=-]{64}`},
	{rule: ruleVendor, prefix: "HRKU-AA", pattern: `[\w-]{58}`},
	{rule: ruleVendor, prefix: "ico-", pattern: `[A-Za-z0-9]{32}`},
	{rule: ruleVendor, prefix: "s-s4t2", pattern: `(?:ud|af)-[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "pat.", pattern: `[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}`},
	{rule: ruleVendor, prefix: "sat.", pattern: `[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}`},
	{rule: ruleVendor, prefix: "NRAK-", pattern: `[A-Za-z0-9]{27}`},
	{rule: ruleVendor, prefix: "NRJS-", pattern: `[a-f0-9]{19}`},
	{rule: ruleVendor, prefix: "NRII-", pattern: `[A-Za-z0-9-]{32}`},
	{rule: ruleVendor, prefix: "ntn_", pattern: `[0-9]{11}[A-Za-z0-9]{35}`},
	{rule: ruleVendor, prefix: "secret_", pattern: `[A-Za-z0-9]{43}`},
	{rule: ruleVendor, prefix: "API-", pattern: `[A-Z0-9]{26}`},
	{rule: ruleVendor, prefix: "sha256~", pattern: `[\w-]{43}`},
	{rule: ruleVendor, prefix: "access-", pattern: `(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`},
	{rule: ruleVendor, prefix: "pscale_", pattern: `(?:pw|tkn|oauth)_[\w=.-]{32,64}`},
	{rule: ruleVendor, prefix: "PMAK-", pattern: `[a-fA-F0-9]{24}-[a-fA-F0-9]{34}`},
	{rule: ruleVendor, prefix: "pnu_", pattern: `[A-Za-z0-9]{36}`},
	{rule: ruleVendor, prefix: "pul-", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "rdme_", pattern: `[a-z0-9]{70}`},
	{rule: ruleVendor, prefix: "tk-us-", pattern: `[\w-]{48}`},
	{rule: ruleVendor, prefix: "sgp_", pattern: `(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}`},
	{rule: ruleVendor, prefix: "sntrys_", pattern: `eyJ[A-Za-z0-9+/]{20,500}={0,2}_[A-Za-z0-9+/]{43}`},
	{rule: ruleVendor, prefix: "sntryu_", pattern: `[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "sm_aat_", pattern: `[A-Za-z0-9]{16}`},
	{rule: ruleVendor, prefix: "sm_pat_", pattern: `[A-Za-z0-9]{16}`},
	{rule: ruleVendor, prefix: "sm_sat_", pattern: `[A-Za-z0-9]{16}`},
	{rule: ruleVendor, prefix: "shippo_", pattern: `(?:live|test)_[a-fA-F0-9]{40}`},
	{rule: ruleVendor, prefix: "shpat_", pattern: `[a-fA-F0-9]{32}`},
	{rule: ruleVendor, prefix: "shpca_", pattern: `[a-fA-F0-9]{32}`},
	{rule: ruleVendor, prefix: "shppa_", pattern: `[a-fA-F0-9]{32}`},
	{rule: ruleVendor, prefix: "shpss_", pattern: `[a-fA-F0-9]{32}`},
	{rule: ruleVendor, prefix: "sq0atp-", pattern: `[\w-]{22}`},
	{rule: ruleVendor, prefix: "sq0csp-", pattern: `[\w-]{43}`},
	{rule: ruleVendor, prefix: "EAAA", pattern: `[\w+=-]{22,60}`},
	{rule: ruleVendor, prefix: "tfp_", pattern: `[\w.=-]{59}`},
	{rule: ruleVendor, prefix: "tvly-", pattern: `[A-Za-z0-9-]{28,64}`},
	{rule: ruleVendor, prefix: "r8_", pattern: `[A-Za-z0-9]{37}`},
	{rule: ruleVendor, prefix: "xai-", pattern: `[A-Za-z0-9]{70,100}`},
	{rule: ruleVendor, prefix: "AQVN", pattern: `[\w-]{35,38}`},
	{rule: ruleVendor, prefix: "YC", pattern: `[A-Za-z0-9_-]{38}`},
	{rule: ruleVendor, prefix: "LTAI", pattern: `[A-Za-z0-9]{20}`},
	{rule: ruleVendor, prefix: "v1.0-", pattern: `[a-f0-9]{24}-[a-f0-9]{146}`},
	{rule: ruleVendor, prefix: "p8e-", pattern: `[A-Za-z0-9]{32}`},
	{rule: ruleVendor, prefix: "4b1d", pattern: `[A-Za-z0-9]{38}`},
	{rule: ruleVendor, prefix: "ATATT3", pattern: `[\w=-]{180,200}`},
	{rule: ruleVendor, prefix: "ATCTT3", pattern: `[\w=-]{180,200}`},
	{rule: ruleVendor, prefix: "ATBB", pattern: `[A-Za-z0-9]{32}`},
	{rule: ruleVendor, prefix: "t1.", pattern: `[\w-]+={0,2}\.[\w-]{86}={0,2}`},
	{rule: ruleVendor, prefix: "sc_", pattern: authressKey},
	{rule: ruleVendor, prefix: "ext_", pattern: authressKey},
	{rule: ruleVendor, prefix: "scauth_", pattern: authressKey},
	{rule: ruleVendor, prefix: "authress_", pattern: authressKey},
	{rule: ruleVendor, prefix: "nvapi-", pattern: `[\w-]{60,70}`},
	{rule: ruleVendor, prefix: "lsv2_", pattern: `(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}`},
	{rule: ruleVendor, prefix: "pcsk_", pattern: `[A-Za-z0-9_]{40,80}`},
	{rule: ruleVendor, prefix: "sbp_", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "sb_secret_", pattern: `[\w-]{24,60}`},
	{rule: ruleVendor, prefix: "phx_", pattern: `[A-Za-z0-9]{40,60}`},
	{rule: ruleVendor, prefix: "figd_", pattern: `[\w-]{36,60}`},
	{rule: ruleVendor, prefix: "nfp_", pattern: `[A-Za-z0-9]{36}`},
	{rule: ruleVendor, prefix: "rnd_", pattern: `[A-Za-z0-9]{26,40}`, digits: true},
	{rule: ruleVendor, prefix: "sk_", pattern: `[a-f0-9]{48}`},
	{rule: ruleVendor, prefix: "SWMTKN-1-", pattern: `[a-z0-9]{50}-[a-z0-9]{25}`},
	{rule: ruleVendor, prefix: "re_", pattern: `[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`, digits: true},
	{rule: ruleMessaging, prefix: "xsmtpsib-", pattern: `[a-f0-9]{64}-[a-zA-Z0-9]{16}`},
	{rule: ruleVendor, prefix: "fw_", pattern: `[A-Za-z0-9]{22,24}`, digits: true},
	{rule: ruleVendor, prefix: "csk-", pattern: `[a-z0-9]{48}`, digits: true},
	{rule: ruleVendor, prefix: "pa-", pattern: `[\w-]{43}`, digits: true},
	{rule: ruleVendor, prefix: "jina_", pattern: `[a-f0-9]{32}[\w-]{28}`},
	{rule: ruleVendor, prefix: "napi_", pattern: `[a-z0-9]{64}`},
	{rule: ruleVendor, prefix: "access_token$production$", pattern: `[a-z0-9]{16}\$[a-f0-9]{32}`},
	{rule: ruleVendor, prefix: "dbtc_", pattern: `[\w-]{30,64}`, digits: true},
	{rule: ruleVendor, prefix: "dbtu_", pattern: `[\w-]{30,64}`, digits: true},
	{rule: rulePackages, prefix: "oy2", pattern: `[a-z0-9]{43}`, digits: true},
	{rule: ruleVendor, prefix: "CCIPAT_", pattern: `[A-Za-z0-9]{22}_[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "CCIPRJ_", pattern: `[A-Za-z0-9]{22}_[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "bkua_", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "sqp_", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "squ_", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "sqa_", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "CFPAT-", pattern: `[\w-]{43}`},
	{rule: ruleVendor, prefix: "pat-na1-", pattern: uuidPattern},
	{rule: ruleVendor, prefix: "pat-eu1-", pattern: uuidPattern},
	{rule: ruleVendor, prefix: "sdk-", pattern: uuidPattern},
	{rule: ruleVendor, prefix: "sk.eyJ", pattern: `[\w-]{40,200}\.[\w-]{20,40}`},
	{rule: ruleVendor, prefix: "sl.", pattern: `(?:u\.)?[\w-]{130,1000}`, digits: true},
	{rule: ruleVendor, prefix: "ATTA", pattern: `[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "AAAAAAAAAAAAAAAAAAAAA", pattern: `[A-Za-z0-9%]{60,120}`},
	{rule: ruleVendor, prefix: "oauth:", pattern: `[a-z0-9]{30}`, digits: true},
	{rule: ruleVendor, prefix: "lin_wh_", pattern: `[A-Za-z0-9]{40,64}`},
	{rule: ruleVendor, prefix: "rpa_", pattern: `[A-Za-z0-9]{40,60}`, digits: true},
	{rule: ruleVendor, prefix: "unkey_", pattern: `[A-Za-z0-9]{20,40}`, digits: true},
	{rule: ruleVendor, prefix: "secret-live-", pattern: `[\w=-]{36,64}`, digits: true},
	{rule: ruleVendor, prefix: "secret-test-", pattern: `[\w=-]{36,64}`, digits: true},
	{rule: ruleVendor, prefix: "bb_live_", pattern: `[\w-]{27}`, digits: true},
	{rule: ruleVendor, prefix: "secret_", pattern: `[a-z]+_[a-f0-9]{32}\.[A-Za-z0-9]{32}`},
	{rule: ruleVendor, prefix: "apify_api_", pattern: `[A-Za-z0-9]{36,40}`},
	{rule: ruleVendor, prefix: "fc-", pattern: `[a-f0-9]{32}`},
	{rule: ruleVendor, prefix: "e2b_", pattern: `[a-f0-9]{40}`},
	{rule: ruleVendor, prefix: "signkey-", pattern: `(?:prod|test|branch)-[a-f0-9]{64}`},
	{rule: ruleVendor, prefix: "secret-", pattern: `[A-Za-z0-9]{43}`, digits: true},
	{rule: ruleWebhook, prefix: "hooks.slack.com/", pattern: `(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,70}`, anywhere: true},
	{rule: ruleWebhook, prefix: "discord.com/api/webhooks/", pattern: `\d{15,22}/[\w-]{40,90}`, anywhere: true},
	{rule: ruleWebhook, prefix: "discordapp.com/api/webhooks/", pattern: `\d{15,22}/[\w-]{40,90}`, anywhere: true},
	{rule: ruleWebhook, prefix: ".webhook.office.com/", pattern: `webhookb2/[a-z0-9-]{36}@[a-z0-9-]{36}/IncomingWebhook/[\w-]{32}/[\w-]{36}`, anywhere: true},
}

const uuidPattern = `[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}`

const authressKey = `[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}`

// find returns an action that matches the shape where its prefix stands. The pattern is compiled when a prefix is first
// seen: most processes never see most of them, and compiled they take megabytes.
func (t tokenShape) find() action {
	compiled := sync.OnceValue(func() func(string) int { return matcher(t.pattern) })
	return func(s *scanner, start, end int) {
		if s.text[start:end] != t.prefix {
			return
		}
		if !t.anywhere && start > 0 && isAlnum(s.text[start-1]) && isAlnum(t.prefix[0]) {
			return
		}
		window := s.text[end:min(len(s.text), end+tokenWindow)]
		if !t.uniform && distinct(window[:min(len(window), 24)]) < 6 {
			return // a mask; spares the pattern
		}
		n := compiled()(window)
		if n < 0 {
			return
		}
		stop := end + n
		for n == len(window) && stop < len(s.text) && isWord(s.text[stop]) { // longer than the window: all of it
			stop++
		}
		if stop < len(s.text) && isWord(s.text[stop]) && isWord(s.text[stop-1]) {
			return
		}
		if stop+1 < len(s.text) && s.text[stop] == '.' && isAlnum(s.text[stop+1]) {
			return // a file name
		}
		value := s.text[end:stop]
		if !t.uniform && !looksRandom(value) || t.digits && !strings.ContainsAny(value, "0123456789") {
			return
		}
		if t.prefix == "sk-" && (strings.HasPrefix(value, "ant-") || shortOfMark(value)) {
			return // "ant-" has its own rule, which knows its length
		}
		if t.prefix == "sk-" && isSlug(value) {
			return
		}
		s.add(t.rule, start, stop)
	}
}

// isSlug tells a name of words with hyphens between them from a key.
func isSlug(value string) bool {
	if strings.Count(value, "-") < 3 || value != strings.ToLower(value) {
		return false
	}
	for part := range strings.SplitSeq(value, "-") {
		if len(part) > 15 || !digits(part) && strings.ContainsAny(part, "0123456789") {
			return false
		}
	}
	return true
}

// openAIMark is base64 of "OpenAI". It stands in the middle of the keys of OpenAI's projects.
const openAIMark = "T3BlbkFJ"

// shortOfMark reports what is as long as the first keys of projects were, 20 characters on both sides of the mark, and
// bears another mark. value is without "sk-".
func shortOfMark(value string) bool {
	kind, key, ok := strings.Cut(value, "-")
	return ok && len(key) == 48 && oneOf(kind, []string{"proj", "svcacct", "admin"}) && key[20:28] != openAIMark
}

// looksRandom tells keys from the xxxx and 1234 of documentation: enough different bytes for the length, no EXAMPLE.
func looksRandom(value string) bool {
	if upper := strings.ToUpper(value); containsAny(upper, []string{"EXAMPLE", "PLACEHOLDER", "DUMMY", "XXXX", "REDACTED", "YOURKEY", "YOUR_", "YOUR-", "CHANGEME"}) {
		return false
	}
	return distinct(value) >= min(8, 2+len(value)/3)
}

// distinct counts the different bytes of s.
func distinct(s string) int {
	var seen [4]uint64
	for i := range len(s) {
		seen[s[i]>>6] |= 1 << (s[i] & 63)
	}
	return bits.OnesCount64(seen[0]) + bits.OnesCount64(seen[1]) + bits.OnesCount64(seen[2]) + bits.OnesCount64(seen[3])
}

// verified runs an action where its keyword really stands: the automaton confuses bytes outside ASCII.
func verified(a action, keyword string) action {
	if strings.IndexFunc(keyword, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return a
	}
	return func(s *scanner, start, end int) {
		if strings.EqualFold(s.text[start:end], keyword) {
			a(s, start, end)
		}
	}
}

// keywordActions lists every keyword and, at the same index, what it sets off.
func keywordActions(custom []CustomRule) ([]string, []action) {
	var words []string
	var actions []action
	on := func(a action, keywords ...string) {
		for _, w := range keywords {
			words, actions = append(words, w), append(actions, verified(a, w))
		}
	}
	for _, t := range tokenShapes {
		on(t.find(), t.prefix)
	}
	on((*scanner).pem, "-----BEGIN ")
	on((*scanner).pemTail, "-----END ")
	on((*scanner).jwt, "ey")
	on((*scanner).wrappedJWT, "ZXlK")
	on((*scanner).urlCredentials, "://")
	for _, c := range commands {
		on(c.find(), c.keyword)
	}
	on((*scanner).piped, "password-stdin", "chpasswd")
	on((*scanner).herePassword, "--with-token", "--password-stdin")
	on((*scanner).netUse, "net use ")
	on((*scanner).htpasswd, "htpasswd ")
	on((*scanner).basicAuth, "basicauth(", "basic_auth(", "auth=(")
	on((*scanner).connectionArguments, "getconnection(")
	on((*scanner).networkLogin, "@tcp(", "@unix(")
	on((*scanner).linkedSecret, "/reset/", "/verify/", "/confirm/", "/invite/", "/activate/", "/magic/", "/unsubscribe/", "/join/")
	on((*scanner).sqlLogin, "jdbc:oracle:thin:", "sqlplus ")
	on((*scanner).authorization, "bearer ", "basic ", "authorization: token ")
	on((*scanner).authorizationHeader, "authorization")
	on((*scanner).cookies, "cookie")
	on((*scanner).sessionCookie, sessionCookies...)
	on((*scanner).encodedPair, "auth\"", "_auth")
	on((*scanner).manifest, "kind: secret", "kind: \"secret\"")
	on((*scanner).pgpass, ":5432:", ":5433:")
	on((*scanner).passwordHash, "$1$", "$5$", "$6$", "$y$", "$2a$", "$2b$", "$2y$", "$argon2i$", "$argon2id$", "$scrypt$", "$pbkdf2")
	on((*scanner).putty, "private-lines:")
	for _, p := range parameters {
		on((*scanner).parameter, p+"=", p+"%3D")
	}
	on((*scanner).azureSecret, "Q~")
	on((*scanner).mailchimp, "-us")
	on((*scanner).terraform, ".atlasv1.")
	on((*scanner).maxmind, "_mmk")
	on((*scanner).tokenAssignment, "token", "secret", "api_key", "apikey", "api-key", "access_key", "accesskey", "access-key",
		"private_key", "private-key", "privatekey", "credential", "license_key", "auth_key", "authkey", "encryption_key", "signing_key", "api key", "access key", "auth key", "license key", "private key", "secret key", "signing key", "encryption key",
		"app_key", "appkey", "app-key", "account_key", "accountkey", "account-key", "master_key", "masterkey", "master-key", "shared_key", "sharedkey",
		"storage_key", "storagekey", "subscription-key", "subscription_key", "subscriptionkey", "sas_key", "write_key", "writekey", "write-key", "sas-key", "service_key", "client_key",
		"client-key", "clientkey", "deploy_key", "session_key", "sessionkey", "encryption-key", "encryptionkey", "signing-key", "signingkey")
	on((*scanner).passwordAssignment, "password", "passwd", "passphrase", "pwd", "passwort", "contraseña", "mot de passe", "passcode", "kennwort",
		"wachtwoord", "senha", "lösenord", "adgangskode", "hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호",
		"parola", "şifre", "heslo", "jelszó", "salasana", "mật khẩu", "كلمة المرور", "كلمة السر", "סיסמה", "पासवर्ड", "รหัสผ่าน")
	on((*scanner).shortPassword, "pass", "psk", "pw")
	on((*scanner).key, "clave")
	on((*scanner).securedString, "securestring ")
	on((*scanner).shortCode, "pin", "cvv", "cvc", "otp", "passcode", "verification code", "security code", "one-time code", "login code", "access code",
		"authentication code", "2fa code", "bestätigungscode", "einmalcode", "code de vérification", "código de verificación")
	on((*scanner).recoveryCodes, "recovery code", "backup code", "rescue code", "wiederherstellungscode", "code de récupération", "codes de récupération",
		"código de recuperación", "códigos de recuperación")
	on((*scanner).toldCredentials, "credentials", "creds", "zugangsdaten", "identifiants", "credenciales")
	on((*scanner).seedPhrase, "seed phrase", "recovery phrase", "mnemonic", "seed words", "secret phrase")
	on((*scanner).awsAccount, "aws_account_id", "awsaccountid")
	on((*scanner).obfuscatedEmail, writtenAt...)
	on((*scanner).phoneLink, "wa.me/", "?phone=", "&phone=")
	on((*scanner).homePath, "/home/", "/users/", `:\users\`, `:\\users\\`, "/documents and settings/")
	serviceActions(on)
	customActions(custom, on)
	return words, actions
}
