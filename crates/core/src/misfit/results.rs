//! The members of each result, by the schemas of 2025-06-18, 2025-11-25 and 2026-07-28. Where these differ, the most
//! permissive one counts.

use super::ResultKind;
use super::shape::{MemberShape, Need, ShapeMember};

const fn optional(name: &'static str, shape: MemberShape) -> ShapeMember {
    required(name, shape, Need::Optional)
}

const fn required(name: &'static str, shape: MemberShape, need: Need) -> ShapeMember {
    ShapeMember { name, shape, need }
}

const ANY_OBJECT: MemberShape = MemberShape::Object(&[]);
const META: ShapeMember = optional("_meta", ANY_OBJECT);
const TITLE: ShapeMember = optional("title", MemberShape::Text);
const DESCRIPTION: ShapeMember = optional("description", MemberShape::Text);
const MIME_TYPE: ShapeMember = optional("mimeType", MemberShape::Text);
const TTL: ShapeMember = optional("ttlMs", MemberShape::Size);
const CACHE: ShapeMember = optional("cacheScope", CACHE_SCOPE);
const CACHE_SCOPE: MemberShape = MemberShape::Word(&["public", "private", ""], "public or private");
const CURSOR: ShapeMember = optional("nextCursor", MemberShape::Opaque);

const ICON: MemberShape = MemberShape::Object(&[
    required("src", MemberShape::Text, Need::Vital),
    MIME_TYPE,
    optional("sizes", MemberShape::List(&MemberShape::Text)),
    optional(
        "theme",
        MemberShape::Word(&["light", "dark"], "light or dark"),
    ),
]);
const ICONS: ShapeMember = optional("icons", MemberShape::List(&ICON));

const ANNOTATIONS: ShapeMember = optional(
    "annotations",
    MemberShape::Object(&[
        optional(
            "audience",
            MemberShape::List(&MemberShape::Word(
                &["user", "assistant"],
                "user or assistant",
            )),
        ),
        optional("priority", MemberShape::Number),
        optional("lastModified", MemberShape::Text),
    ]),
);

const IMPLEMENTATION: MemberShape = MemberShape::Object(&[
    required("name", MemberShape::Text, Need::Text("")),
    TITLE,
    required("version", MemberShape::Text, Need::Text("")),
    DESCRIPTION,
    ICONS,
    optional("websiteUrl", MemberShape::Text),
]);

const LIST_CHANGED: ShapeMember = optional("listChanged", MemberShape::Flag);
const CAPABILITIES: MemberShape = MemberShape::Capability(&[
    optional("experimental", MemberShape::Map(&ANY_OBJECT)),
    optional("extensions", MemberShape::Map(&ANY_OBJECT)),
    optional("logging", MemberShape::Capability(&[])),
    optional("completions", MemberShape::Capability(&[])),
    optional("prompts", MemberShape::Capability(&[LIST_CHANGED])),
    optional(
        "resources",
        MemberShape::Capability(&[optional("subscribe", MemberShape::Flag), LIST_CHANGED]),
    ),
    optional("tools", MemberShape::Capability(&[LIST_CHANGED])),
]);

const INITIALIZE: MemberShape = MemberShape::Object(&[
    required("protocolVersion", MemberShape::Opaque, Need::Text("")),
    required("capabilities", CAPABILITIES, Need::Object),
    required("serverInfo", IMPLEMENTATION, Need::Object),
    optional("instructions", MemberShape::Text),
    META,
]);

const DISCOVER: MemberShape = MemberShape::Object(&[
    required("resultType", MemberShape::Text, Need::Text("complete")),
    required(
        "supportedVersions",
        MemberShape::List(&MemberShape::Opaque),
        Need::Vital,
    ),
    required("capabilities", CAPABILITIES, Need::Object),
    optional("instructions", MemberShape::Text),
    required("ttlMs", MemberShape::Size, Need::Zero),
    required("cacheScope", CACHE_SCOPE, Need::Text("private")),
    optional(
        "_meta",
        MemberShape::Object(&[optional(
            "io.modelcontextprotocol/serverInfo",
            IMPLEMENTATION,
        )]),
    ),
]);

const CONTENTS: MemberShape = MemberShape::AnyOf(
    &[
        required("uri", MemberShape::Text, Need::Text("")),
        MIME_TYPE,
        optional("text", MemberShape::Text),
        optional("blob", MemberShape::Text),
        META,
    ],
    &["text", "blob"],
    "contents with a text or a blob",
);

const MEDIA: &[ShapeMember] = &[
    required("data", MemberShape::Text, Need::Text("")),
    required("mimeType", MemberShape::Text, Need::Text("")),
    ANNOTATIONS,
    META,
];

const RESOURCE: &[ShapeMember] = &[
    required("uri", MemberShape::Text, Need::Vital),
    required("name", MemberShape::Text, Need::Text("")),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    optional("size", MemberShape::Size),
    ICONS,
    ANNOTATIONS,
    META,
];

const CONTENT: MemberShape = MemberShape::Tagged(
    &[
        (
            "text",
            &[
                required("text", MemberShape::Text, Need::Vital),
                ANNOTATIONS,
                META,
            ],
        ),
        ("image", MEDIA),
        ("audio", MEDIA),
        (
            "resource",
            &[
                required("resource", CONTENTS, Need::Vital),
                ANNOTATIONS,
                META,
            ],
        ),
        ("resource_link", RESOURCE),
    ],
    "text, image, audio, resource or resource_link",
);

const COMPLETE: ShapeMember = optional(
    "resultType",
    MemberShape::Word(&["complete"], "a known type of result"),
);

const TOOL_RESULT: MemberShape = MemberShape::Object(&[
    COMPLETE,
    required("content", MemberShape::List(&CONTENT), Need::List),
    optional("structuredContent", MemberShape::Any),
    optional("isError", MemberShape::Flag),
    META,
]);

const PROMPT_RESULT: MemberShape = MemberShape::Object(&[
    COMPLETE,
    DESCRIPTION,
    required(
        "messages",
        MemberShape::List(&MemberShape::Object(&[
            required(
                "role",
                MemberShape::Word(&["user", "assistant"], "user or assistant"),
                Need::Vital,
            ),
            required("content", CONTENT, Need::Vital),
        ])),
        Need::List,
    ),
    META,
]);

const RESOURCE_RESULT: MemberShape = MemberShape::Object(&[
    COMPLETE,
    required("contents", MemberShape::List(&CONTENTS), Need::List),
    TTL,
    CACHE,
    META,
]);

const TOOL: MemberShape = MemberShape::Object(&[
    required("name", MemberShape::Text, Need::Vital),
    TITLE,
    DESCRIPTION,
    required("inputSchema", ANY_OBJECT, Need::Object),
    optional("outputSchema", ANY_OBJECT),
    optional(
        "annotations",
        MemberShape::Object(&[
            TITLE,
            optional("readOnlyHint", MemberShape::Flag),
            optional("destructiveHint", MemberShape::Flag),
            optional("idempotentHint", MemberShape::Flag),
            optional("openWorldHint", MemberShape::Flag),
        ]),
    ),
    ICONS,
    META,
]);

const PROMPT: MemberShape = MemberShape::Object(&[
    required("name", MemberShape::Text, Need::Vital),
    TITLE,
    DESCRIPTION,
    optional(
        "arguments",
        MemberShape::List(&MemberShape::Object(&[
            required("name", MemberShape::Text, Need::Vital),
            TITLE,
            DESCRIPTION,
            optional("required", MemberShape::Flag),
        ])),
    ),
    ICONS,
    META,
]);

const TEMPLATE: MemberShape = MemberShape::Object(&[
    required("uriTemplate", MemberShape::Text, Need::Vital),
    required("name", MemberShape::Text, Need::Text("")),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    ICONS,
    ANNOTATIONS,
    META,
]);

const TOOLS: MemberShape = MemberShape::Object(&[
    COMPLETE,
    required("tools", MemberShape::List(&TOOL), Need::List),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const PROMPTS: MemberShape = MemberShape::Object(&[
    COMPLETE,
    required("prompts", MemberShape::List(&PROMPT), Need::List),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const RESOURCES: MemberShape = MemberShape::Object(&[
    COMPLETE,
    required(
        "resources",
        MemberShape::List(&MemberShape::Object(RESOURCE)),
        Need::List,
    ),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const TEMPLATES: MemberShape = MemberShape::Object(&[
    COMPLETE,
    required(
        "resourceTemplates",
        MemberShape::List(&TEMPLATE),
        Need::List,
    ),
    CURSOR,
    TTL,
    CACHE,
    META,
]);

const INPUT_REQUIRED: MemberShape = MemberShape::Object(&[
    optional(
        "inputRequests",
        MemberShape::Map(&MemberShape::Object(&[
            required(
                "method",
                MemberShape::Word(
                    &["elicitation/create", "sampling/createMessage", "roots/list"],
                    "elicitation/create, sampling/createMessage or roots/list",
                ),
                Need::Vital,
            ),
            optional("params", ANY_OBJECT),
        ])),
    ),
    optional("requestState", MemberShape::Opaque),
    META,
]);

/// Returns the members of a result.
pub(super) fn of(kind: ResultKind) -> MemberShape {
    match kind {
        ResultKind::Initialize => INITIALIZE,
        ResultKind::Discover => DISCOVER,
        ResultKind::Tool => TOOL_RESULT,
        ResultKind::Prompt => PROMPT_RESULT,
        ResultKind::Resource => RESOURCE_RESULT,
        ResultKind::Tools => TOOLS,
        ResultKind::Prompts => PROMPTS,
        ResultKind::Resources => RESOURCES,
        ResultKind::Templates => TEMPLATES,
        ResultKind::InputRequired => INPUT_REQUIRED,
    }
}
